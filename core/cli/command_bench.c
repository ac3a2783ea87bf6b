/*
 * command_bench.c - pons bench: seconds per optimizer step of a file, without data and with it.
 */
#include <config.h>

#include "base/json.h"
#include "cli/bench_data.h"
#include "cli/command.h"
#include "train/measure.h"

#include <math.h>

typedef struct bench_flags {
    bool json, reference, no_data, data;
    int64_t steps, warm_up;
} bench_flags;

static const pons_option flags[] = {
    PONS_FLAG(bench_flags, json, no, "One JSON object on the standard output."),
    PONS_INTEGER(bench_flags, steps, 10, 1, MEASURE_STEPS_MAX, "Steps that are measured."),
    PONS_INTEGER(bench_flags, warm_up, 3, 0, 1000, "Steps before, that are not."),
    PONS_FLAG(bench_flags, no_data, no, "Leave out the measurement with data."),
    PONS_FLAG(bench_flags, data, no,
              "Measure reading, preprocessing and patches alone; --steps counts micro-batches."),
    PONS_FLAG(bench_flags, reference, no, "Measure also where a kernel is the plain reference."),
    PONS_OPTIONS_END
};

static const char *const section_names[4] = { "begin", "micro", "reduce", "update" };

static double smallest(const measured *m)
{
    double least = INFINITY;

    for (int i = 0; i < m->count; i++)
        least = fmin(least, m->step[i]);
    return least;
}

static void print_json(const experiment *e, const measured *m)
{
    fputs("{\"processor\":", stdout);
    json_put_text(stdout, e->device.facts.name);
    printf(",\"precision\":\"%s\",\"threads\":%d,\"step_seconds\":{\"median\":",
           precision_name(e->precision), e->device.facts.threads);
    json_put_number(stdout, measure_median(m->count, m->step));
    fputs(",\"min\":", stdout);
    json_put_number(stdout, smallest(m));
    fputs(",\"all\":[", stdout);
    for (int i = 0; i < m->count; i++) {
        fputs(i > 0 ? "," : "", stdout);
        json_put_number(stdout, m->step[i]);
    }
    fputs("]},\"phases\":{", stdout);
    for (int i = 0; i < 4; i++) {
        printf("%s\"%s\":", i > 0 ? "," : "", section_names[i]);
        json_put_number(stdout, m->section[i]);
    }
    fputs("},\"with_data_seconds\":", stdout);
    json_put_number(stdout, m->with_data);
    fputs(",\"mode\":\"single\",\"replicas\":1}\n", stdout);
}

static void print_table(const experiment *e, const bench_flags *f, const measured *m)
{
    printf("processor   %s\nprecision   %s, %d threads\n", e->device.facts.name,
           precision_name(e->precision), e->device.facts.threads);
    printf("step        %.4f s (median of %d after %d more, least %.4f s)\n",
           measure_median(m->count, m->step), m->count, (int)f->warm_up, smallest(m));
    for (int i = 0; i < 4; i++)
        printf("  %-9s %.4f s\n", section_names[i], m->section[i]);
    if (isfinite(m->with_data))
        printf("with data   %.4f s\n", m->with_data);
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const bench_flags *f = given;
    experiment_known known = { 0 };
    experiment *e = NULL;
    config *c = NULL;
    measured m;

    if (invocation_config(call, call->argument[0], &c, err) != PONS_OK)
        return err->status;
    if (f->data) {
        bench_data(c, (int)f->warm_up, (int)f->steps, f->json, call->log, err);
        config_close(c);
        return err->status;
    }
    if (experiment_open(c, EXPERIMENT_TRAIN, &known, call->log, &e, err) == PONS_OK
        && measure_steps(e, (int)f->warm_up, (int)f->steps, f->reference, !f->no_data, &m, err)
           == PONS_OK) {
        if (f->json)
            print_json(e, &m);
        else
            print_table(e, f, &m);
    }
    experiment_close(e);
    config_close(c);
    return err->status;
}

const command command_bench = {
    "bench", "seconds per optimizer step", "FILE.ini", flags, sizeof(bench_flags), "", 1, 1, run
};
