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

/* A predictor that gives up when it is asked to stop. */
typedef struct stoppable {
    const validation *validation;
    window_predictor predictor;
    bool stopped;
} stoppable;

static pons_status run_or_stop(void *context, const float **logits, pons_error *err)
{
    stoppable *s = context;
    const validation *v = s->validation;

    s->stopped = v->stop != NULL && v->stop(v->context);
    if (s->stopped)
        return pons_fail(err, PONS_INTERRUPTED, "validation stopped");
    return s->predictor.run(s->predictor.context, logits, err);
}

static pons_status count_case(const validation *v, stoppable *s, const pons_case *c,
                              metric_count *count, pons_error *err)
{
    const experiment *e = v->experiment;
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

static pons_status add_case(const validation *v, stoppable *s, int rank, validation_result *result,
                            pons_error *err)
{
    metric_count count[256];
    pons_case c;

    memset(&c, 0, sizeof c);
    if (cache_read(v->cache, rank, &c, err) != PONS_OK)
        return err->status;
    if (c.label.voxels == NULL)
        pons_fail(err, PONS_DATA, "validation case '%s' has no label", c.name);
    else if (count_case(v, s, &c, count, err) == PONS_OK)
        for (int i = 0; i < v->experiment->class_count; i++)
            metric_summary_add(&result->classes[i], count[i]);
    case_clear(&c);
    return err->status;
}

pons_status validation_run(const validation *v, validation_result *result, pons_error *err)
{
    stoppable s = { .validation = v };

    if (network_predictor(v->experiment, v->program, &s.predictor, err) != PONS_OK)
        return err->status;
    memset(result->classes, 0, (size_t)v->experiment->class_count * sizeof *result->classes);
    result->cases = 0;
    result->stopped = false;
    for (int i = 0; i < v->count; i++) {
        pons_error problem = PONS_ERROR_INIT;
        if (add_case(v, &s, v->ranks[i], result, &problem) != PONS_OK) {
            if (!s.stopped)
                return pons_fail(err, problem.status, "%s", problem.text);
            result->stopped = true;
            return PONS_OK;
        }
        result->cases++;
    }
    return PONS_OK;
}
