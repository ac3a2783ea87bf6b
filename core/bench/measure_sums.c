/*
 * measure_sums.c - the sums over replicas in measured steps: their hidden share, a representative
 * step, and the network between processes.
 */
#include "bench/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/group/group.h"
#include "replica/replicas.h"

/* The measured step whose length is nearest to the median. */
static int median_step(const measured *m)
{
    double median = measure_median(m->count, m->step);
    int nearest = 0;

    for (int i = 1; i < m->count; i++)
        if (fabs(m->step[i] - median) < fabs(m->step[nearest] - median))
            nearest = i;
    return nearest;
}

/* The replica that computed longest determines how long the others wait. */
static const comm_trace_step *longest_here(const replicas *r, int at)
{
    const comm_trace_step *longest = comm_trace_step_at(r->item[0].trace, at);

    for (int i = 1; i < r->count; i++)
        if (comm_trace_step_at(r->item[i].trace, at)->compute > longest->compute)
            longest = comm_trace_step_at(r->item[i].trace, at);
    return longest;
}

/* Find the process whose step computed longest. */
static pons_status find_longest(group *g, double compute, int *rank, pons_error *err)
{
    double *all = malloc((size_t)group_size(g) * sizeof *all);

    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", group_size(g));
    *rank = 0;
    if (group_all_gather(g, &compute, sizeof compute, all, err) == PONS_OK)
        for (int i = 1; i < group_size(g); i++)
            *rank = all[i] > all[*rank] ? i : *rank;
    free(all);
    return err->status;
}

/* Take times and sums from the process that computed longest; the list of sums is equal in all. */
static pons_status take_longest(group *g, comm_trace_step *s, pons_error *err)
{
    double times[] = { s->backward, s->compute, s->seconds };
    int rank = 0;

    if (g == NULL)
        return PONS_OK;
    if (find_longest(g, s->compute, &rank, err) != PONS_OK
        || group_broadcast(g, times, sizeof times, rank, err) != PONS_OK
        || group_broadcast(g, s->sum, (size_t)s->count * sizeof *s->sum, rank, err) != PONS_OK)
        return err->status;
    s->backward = times[0];
    s->compute = times[1];
    s->seconds = times[2];
    return PONS_OK;
}

static pons_status keep_step(const experiment *e, const replicas *r, measured *out,
                             pons_error *err)
{
    int at = median_step(out);
    const comm_trace_step *longest;
    trace_sum *sum;

    if (e->group != NULL && group_broadcast(e->group, &at, sizeof at, 0, err) != PONS_OK)
        return err->status;
    longest = longest_here(r, at);
    sum = malloc(((size_t)longest->count + 1) * sizeof *sum);
    if (sum == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the trace of a step");
    if (longest->count > 0)
        memcpy(sum, longest->sum, (size_t)longest->count * sizeof *sum);
    out->sums.step = *longest;
    out->sums.step.sum = sum;
    return take_longest(e->group, &out->sums.step, err);
}

/* The hidden share over all steps of all replicas. */
static pons_status find_hidden(const experiment *e, const replicas *r, measured *out,
                               pons_error *err)
{
    double mine[2] = { 0, 0 }, total[2] = { 0, 0 }, *all;
    int processes = e->group != NULL ? group_size(e->group) : 1;

    for (int i = 0; i < r->count; i++)
        for (int at = 0; at < out->count; at++)
            comm_trace_add_hidden(comm_trace_step_at(r->item[i].trace, at), &mine[0], &mine[1]);
    all = malloc((size_t)processes * sizeof mine);
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", processes);
    memcpy(all, mine, sizeof mine);
    if (e->group != NULL)
        group_all_gather(e->group, mine, sizeof mine, all, err);
    for (int i = 0; i < processes; i++) {
        total[0] += all[2 * i];
        total[1] += all[2 * i + 1];
    }
    free(all);
    if (e->replicas > 1)
        out->sums.hidden = total[1] / total[0];
    return err->status;
}

/* The median seconds of an isolated sum of 'count' floats. */
static pons_status time_sum(const program_collective *c, float *buffer, int64_t count,
                            double *seconds, pons_error *err)
{
    enum { WARM_UP = 2, ROUNDS = 11 };
    double round[ROUNDS];

    for (int i = -WARM_UP; i < ROUNDS; i++) {
        double begin = seconds_now();
        void *pending;
        if (c->start(c->context, buffer, count, PONS_F32, &pending, err) != PONS_OK
            || c->wait(c->context, pending, err) != PONS_OK)
            return err->status;
        if (i >= 0)
            round[i] = seconds_now() - begin;
    }
    *seconds = measure_median(ROUNDS, round);
    return PONS_OK;
}

/*
 * Fit the network between processes, all of which take part. Replicas of one process use no
 * network.
 */
static pons_status measure_network(const experiment *e, measured *out, pons_error *err)
{
    static const int64_t size[] = { 8, 4 << 20 };
    double seconds[2];
    float *buffer;

    if (e->group == NULL)
        return PONS_OK;
    buffer = calloc(1, (size_t)size[1]);
    if (buffer == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a sum of %lld bytes",
                         (long long)size[1]);
    for (int i = 0; i < 2 && err->status == PONS_OK; i++)
        time_sum(group_collective(e->group), buffer, size[i] / (int64_t)sizeof *buffer,
                 &seconds[i], err);
    free(buffer);
    out->sums.network.collected = e->sections.experiment.deterministic;
    if (err->status == PONS_OK)
        scaling_model_fit(2, size, seconds, e->replicas, &out->sums.network);
    return err->status;
}

pons_status measure_sums(const experiment *e, const struct replicas *r, measured *out,
                         pons_error *err)
{
    if (r->item[0].trace == NULL)
        return PONS_OK;
    if (find_hidden(e, r, out, err) != PONS_OK || keep_step(e, r, out, err) != PONS_OK)
        return err->status;
    return measure_network(e, out, err);
}
