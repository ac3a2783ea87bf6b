/*
 * validation.c - predict, decide, count. What is reported and compared is the trainer's.
 */
#include <config.h>

#include "train/validation.h"

#include "train/activation.h"

#include <stdlib.h>
#include <string.h>

int validation_first_class(const experiment *e)
{
    return !e->regions && e->class_count > 1 ? 1 : 0;
}

/* All cases, and what is counted in each: [case][class]. */
typedef struct counting {
    const validation *validation;
    const experiment *experiment;
    metric_count *count;
} counting;

/* A replica's predictor, which gives up when it is asked to stop. */
typedef struct stoppable {
    const validation *validation;
    const experiment *experiment;
    window_predictor predictor;
} stoppable;

static pons_status run_or_stop(void *context, const float **logits, pons_error *err)
{
    stoppable *s = context;
    const validation *v = s->validation;

    if (v->stop != NULL && v->stop(v->context))
        return pons_fail(err, PONS_INTERRUPTED, "validation stopped");
    return s->predictor.run(s->predictor.context, logits, err);
}

static pons_status count_voxels(stoppable *s, const pons_case *c, metric_count *count,
                                pons_error *err)
{
    const experiment *e = s->experiment;
    int64_t voxels = pons_volume_count(&c->image);
    float *logits = malloc((size_t)(voxels * e->task.classes) * sizeof *logits);
    uint8_t *decided = malloc((size_t)(voxels * e->task.classes));
    window_settings settings;

    if (logits == NULL || decided == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for the logits of case '%s'", c->name);
        goto release;
    }
    network_window_settings(e, &settings);
    window_predictor p = { s->predictor.input, s->predictor.channels, s->predictor.classes,
                           run_or_stop, s };
    if (window_stitch(&settings, c->image.extent, c->image.voxels, &p, logits, err) != PONS_OK)
        goto release;
    logits_decide(e, logits, voxels, decided);
    if (e->regions)
        metric_count_regions(decided, c->label.voxels, voxels, e->class_count, count);
    else
        metric_count_labels(decided, c->label.voxels, voxels, e->class_count, count);
release:
    free(logits);
    free(decided);
    return err->status;
}

static pons_status count_case(stoppable *s, int rank, metric_count *count, pons_error *err)
{
    pons_case c;

    memset(&c, 0, sizeof c);
    if (cache_read(s->validation->cache, rank, &c, err) != PONS_OK)
        return err->status;
    if (c.label.voxels == NULL)
        pons_fail(err, PONS_DATA, "validation case '%s' has no label", c.name);
    else
        count_voxels(s, &c, count, err);
    case_clear(&c);
    return err->status;
}

/* Every replica takes each replicas-th case; the counts do not tell who made them. */
static pons_status count_share(void *context, replica *r, pons_error *err)
{
    const counting *all = context;
    const validation *v = all->validation;
    stoppable s = { .validation = v, .experiment = all->experiment };

    if (network_predictor(all->experiment, r->evaluation, &s.predictor, err) != PONS_OK)
        return err->status;
    for (int i = r->number; i < v->count; i += all->experiment->replicas)
        if (count_case(&s, v->ranks[i], all->count + i * all->experiment->class_count, err)
            != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* In order of cases, so that sums have the bits of one replica. */
static void summarise(const counting *all, validation_result *result)
{
    int classes = all->experiment->class_count;

    memset(result->classes, 0, (size_t)classes * sizeof *result->classes);
    for (int i = 0; i < all->validation->count; i++)
        for (int c = 0; c < classes; c++)
            metric_summary_add(&result->classes[c], all->count[i * classes + c]);
    result->cases = all->validation->count;
}

pons_status validation_run(const validation *v, validation_result *result, pons_error *err)
{
    counting all = { v, v->replicas->experiment, NULL };
    pons_error problem = PONS_ERROR_INIT;

    result->stopped = false;
    all.count = calloc((size_t)(v->count * all.experiment->class_count) + 1, sizeof *all.count);
    if (all.count == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a validation");
    if (replicas_run(v->replicas, count_share, &all, &problem) == PONS_OK)
        summarise(&all, result);
    else if (problem.status == PONS_INTERRUPTED)
        result->stopped = true;
    else
        pons_fail(err, problem.status, "%s", problem.text);
    free(all.count);
    return err->status;
}
