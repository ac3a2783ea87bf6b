/*
 * bench_model.c - print the measured and predicted sums over replicas for pons bench.
 */
#include "cli/bench/bench_model.h"

#include <inttypes.h>
#include <math.h>

#include "base/file/json.h"

/* The numbers of devices to predict. The INI file's own number precedes them. */
static const int device_counts[] = { 2, 8, 64, 512 };
enum { COUNTS = sizeof device_counts / sizeof *device_counts };

typedef struct prediction {
    int devices;
    double seconds[SCALING_MODEL_ALGORITHM_COUNT];
} prediction;

typedef struct predictions {
    int count;
    prediction item[COUNTS + 1];
} predictions;

static const char *const way_names[SCALING_MODEL_ALGORITHM_COUNT] = { "ring", "tree" };

static pons_status predict(const experiment *e, const measured *m, const scaling_model_network *n,
                           predictions *out, pons_error *err)
{
    *out = (predictions){ .count = 0 };
    if (e->replicas > 1)
        out->item[out->count++].devices = e->replicas;
    for (int i = 0; i < COUNTS; i++)
        if (device_counts[i] != e->replicas)
            out->item[out->count++].devices = device_counts[i];
    for (int i = 0; i < out->count; i++)
        for (int way = 0; way < SCALING_MODEL_ALGORITHM_COUNT; way++)
            if (scaling_model_predict(&m->sums.step, n, (scaling_model_algorithm)way,
                                      out->item[i].devices,
                                      &out->item[i].seconds[way], err) != PONS_OK)
                return err->status;
    return PONS_OK;
}

/* The number and size of buckets, and of sums inside the passes. */
typedef struct tally {
    int buckets, inside;
    int64_t bucket_size, inside_size;
    double seconds;           /* time of the buckets from start to end                            */
} tally;

static tally count_sums(const comm_trace_step *s)
{
    tally t = { 0, 0, 0, 0, 0 };

    for (int i = 0; i < s->count; i++) {
        const trace_sum *sum = &s->sum[i];
        *(sum->bucket ? &t.buckets : &t.inside) += 1;
        *(sum->bucket ? &t.bucket_size : &t.inside_size) += sum->size;
        t.seconds += sum->bucket ? sum->ended - sum->started : 0;
    }
    return t;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_sums(const comm_trace_step *s)
{
    fputs(",\"sums\":[", stdout);
    for (int i = 0; i < s->count; i++) {
        const trace_sum *sum = &s->sum[i];
        printf("%s{\"bytes\":%" PRId64 ",\"bucket\":%s,\"started\":", i > 0 ? "," : "", sum->size,
               sum->bucket ? "true" : "false");
        json_put_number(stdout, sum->started);
        fputs(",\"done\":", stdout);
        json_put_number(stdout, sum->ended);
        putchar('}');
    }
    putchar(']');
}

static void put_reduction(const measured *m)
{
    const comm_trace_step *s = &m->sums.step;
    tally t = count_sums(s);

    if (isnan(m->sums.hidden)) {
        fputs(",\"reduction\":null", stdout);
        return;
    }
    fputs(",\"reduction\":{\"hidden\":", stdout);
    json_put_number(stdout, m->sums.hidden);
    fputs(",\"seconds\":", stdout);
    json_put_number(stdout, t.seconds);
    printf(",\"buckets\":%d,\"bytes\":%" PRId64 ",\"backward_seconds\":", t.buckets, t.bucket_size);
    json_put_number(stdout, s->backward);
    fputs(",\"network\":", stdout);
    if (m->sums.network.bandwidth > 0) {
        fputs("{\"latency\":", stdout);
        json_put_number(stdout, m->sums.network.latency);
        fputs(",\"bandwidth\":", stdout);
        json_put_number(stdout, m->sums.network.bandwidth);
        putchar('}');
    } else {
        fputs("null", stdout);
    }
    put_sums(s);
    putchar('}');
}

pons_status bench_model_json(const experiment *e, const measured *m, const scaling_model_network *n,
                             pons_error *err)
{
    predictions all;

    put_reduction(m);
    if (n == NULL || predict(e, m, n, &all, err) != PONS_OK)
        return err->status;
    fputs(",\"model\":{\"latency\":", stdout);
    json_put_number(stdout, n->latency);
    fputs(",\"bandwidth\":", stdout);
    json_put_number(stdout, n->bandwidth);
    fputs(",\"compute_seconds\":", stdout);
    json_put_number(stdout, m->sums.step.compute);
    fputs(",\"step_seconds\":", stdout);
    json_put_number(stdout, m->sums.step.seconds);
    fputs(",\"devices\":[", stdout);
    for (int i = 0; i < all.count; i++) {
        printf("%s{\"devices\":%d", i > 0 ? "," : "", all.item[i].devices);
        for (int way = 0; way < SCALING_MODEL_ALGORITHM_COUNT; way++) {
            printf(",\"%s\":{\"step_seconds\":", way_names[way]);
            json_put_number(stdout, all.item[i].seconds[way]);
            fputs(",\"efficiency\":", stdout);
            json_put_number(stdout, m->sums.step.compute / all.item[i].seconds[way]);
            putchar('}');
        }
        putchar('}');
    }
    fputs("]}", stdout);
    return PONS_OK;
}

/* ---- table ----------------------------------------------------------------------------------- */

static void print_reduction(const measured *m)
{
    tally t = count_sums(&m->sums.step);

    if (isnan(m->sums.hidden))
        return;
    printf("reduction   %.0f %% hidden: %.1f MB in %d bucket%s, together %.1f ms from start to "
           "done\n", 100 * m->sums.hidden, 1e-6 * (double)t.bucket_size, t.buckets,
           t.buckets == 1 ? "" : "s", 1e3 * t.seconds);
    if (m->sums.network.bandwidth > 0)
        printf("network     messages of %.3g s, links of %.3g bytes/s: sums of 8 bytes and 4 MiB\n",
               m->sums.network.latency, m->sums.network.bandwidth);
    if (t.inside > 0)
        printf("joined      %d sums of statistics and losses, %.1f kB\n", t.inside,
               1e-3 * (double)t.inside_size);
}

pons_status bench_model_table(const experiment *e, const measured *m,
                              const scaling_model_network *n, pons_error *err)
{
    const comm_trace_step *s = &m->sums.step;
    predictions all;

    print_reduction(m);
    if (n == NULL || predict(e, m, n, &all, err) != PONS_OK)
        return err->status;
    printf("model       %.4f s of computing in a step, messages of %g s, links of %g bytes/s\n",
           s->compute, n->latency, n->bandwidth);
    printf("%9s %12s %12s %12s %12s\n", "devices", "ring step", "efficiency", "tree step",
           "efficiency");
    for (int i = 0; i < all.count; i++) {
        const prediction *p = &all.item[i];
        printf("%9d %10.4f s %10.1f %% %10.4f s %10.1f %%", p->devices,
               p->seconds[SCALING_MODEL_RING],
               100 * s->compute / p->seconds[SCALING_MODEL_RING], p->seconds[SCALING_MODEL_TREE],
               100 * s->compute / p->seconds[SCALING_MODEL_TREE]);
        if (p->devices == e->replicas && e->replicas > 1)
            printf("  measured %.4f s", s->seconds);
        putchar('\n');
    }
    return PONS_OK;
}
