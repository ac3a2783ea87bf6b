/*
 * trainer_metrics.c - the record of a step: what its numbers are called, and the memory that each
 * replica holds on its GPU. That memory is laid out before the first step and does not change.
 */
#include "train/trainer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/memory_limit.h"
#include "cluster/group/group.h"

enum { FIXED = 7, NAME = 32 }; /* loss ... loss_scale; bytes of "device_memory.N"                 */

struct step_metrics {
    int count;                 /* of 'memory': replicas of the run, 0 on processors               */
    double *memory;
    char (*name)[NAME];
    pons_metric *metric;
};

static struct step_metrics *make(int count, pons_error *err)
{
    struct step_metrics *m = calloc(1, sizeof *m);

    if (m != NULL) {
        m->count = count;
        m->memory = calloc((size_t)count + 1, sizeof *m->memory);
        m->name = calloc((size_t)count + 1, sizeof *m->name);
        m->metric = calloc((size_t)count + FIXED, sizeof *m->metric);
    }
    if (m == NULL || m->memory == NULL || m->name == NULL || m->metric == NULL) {
        trainer_close_metrics(m);
        pons_fail(err, PONS_DEVICE, "out of memory for the numbers of a step");
        return NULL;
    }
    for (int i = 0; i < count; i++)
        snprintf(m->name[i], NAME, "device_memory.%d", i);
    return m;
}

/* Bytes of every replica of the run, in all processes. */
static pons_status gather_memory(const trainer *t, struct step_metrics *m, pons_error *err)
{
    group *g = t->experiment->group;
    const replicas *r = &t->replicas;
    double mine[DEVICES_MAX] = { 0 };

    for (int i = 0; i < r->count; i++)
        mine[i] = replica_bytes(&r->item[i]) + (double)r->item[i].held_size;
    if (g != NULL)
        return group_all_gather(g, mine, (size_t)r->count * sizeof *mine, m->memory, err);
    memcpy(m->memory, mine, (size_t)r->count * sizeof *mine);
    return PONS_OK;
}

pons_status trainer_open_metrics(trainer *t, pons_error *err)
{
    bool host = t->experiment->device.facts.host_memory;

    t->metrics = make(host ? 0 : t->experiment->replicas, err);
    if (t->metrics == NULL || t->metrics->count == 0)
        return err->status;
    return gather_memory(t, t->metrics, err);
}

void trainer_close_metrics(struct step_metrics *m)
{
    if (m == NULL)
        return;
    free(m->memory);
    free(m->name);
    free(m->metric);
    free(m);
}

pons_status trainer_record_step(trainer *t, const step_numbers *s, pons_error *err)
{
    struct step_metrics *m = t->metrics;
    const pons_metric fixed[] = {
        { "loss", s->result->loss }, { "lr", s->lr }, { "grad_norm", s->result->grad_norm },
        { "seconds", s->seconds }, { "data_seconds", s->data_seconds },
        { "memory", memory_peak_bytes() }, { "loss_scale", s->result->scale }
    };
    int n = FIXED - (t->experiment->precision == PRECISION_FP16 ? 0 : 1);

    memcpy(m->metric, fixed, (size_t)n * sizeof *fixed);
    for (int i = 0; i < m->count; i++)
        m->metric[n++] = (pons_metric){ m->name[i], m->memory[i] };
    return trainer_record(t, "step", s->epoch, n, m->metric, err);
}
