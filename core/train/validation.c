/*
 * validation.c - predict, decide, count. What is reported and compared is the trainer's.
 */
#include <config.h>

#include "train/validation.h"

#include "base/pages.h"
#include "train/activation.h"
#include "train/spread.h"

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
    int first, step;          /* this process has cases first, first + step, ...                  */
    metric_count *count;
} counting;

static bool stop_asked(void *context)
{
    const validation *v = ((const counting *)context)->validation;

    return v->stop != NULL && v->stop(v->context);
}

static pons_status prepare(void *context, int number, spread_volume *out, pons_error *err)
{
    const counting *all = context;
    const validation *v = all->validation;
    pons_case *c = calloc(1, sizeof *c);
    int64_t voxels;

    if (c == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a validation case");
    out->held = c;
    if (cache_read(v->cache, v->ranks[all->first + number * all->step], c, err) != PONS_OK)
        return err->status;
    if (c->label.voxels == NULL)
        return pons_fail(err, PONS_DATA, "validation case '%s' has no label", c->name);
    voxels = pons_volume_count(&c->image);
    out->network = v->replicas;
    memcpy(out->extent, c->image.extent, sizeof out->extent);
    out->image = c->image.voxels;
    out->logits = pages_alloc_zeroed((size_t)(voxels * all->experiment->task.classes)
                                     * sizeof *out->logits);
    if (out->logits == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the logits of case '%s'", c->name);
    return PONS_OK;
}

static pons_status count_voxels(void *context, int number, spread_volume *v, pons_error *err)
{
    const counting *all = context;
    const experiment *e = all->experiment;
    pons_case *c = v->held;
    int64_t voxels = pons_volume_count(&c->image);
    metric_count *count = all->count + (all->first + number * all->step) * e->class_count;
    uint8_t *decided = malloc((size_t)(voxels * e->task.classes));

    if (decided == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the classes of case '%s'", c->name);
    pons_volume_clear(&c->image);
    logits_decide(e, v->logits, voxels, decided);
    if (e->regions)
        metric_count_regions(decided, c->label.voxels, voxels, e->class_count, count);
    else
        metric_count_labels(decided, c->label.voxels, voxels, e->class_count, count);
    free(decided);
    return PONS_OK;
}

static void release(void *context, spread_volume *v)
{
    if (v->held != NULL)
        case_clear(v->held);
    free(v->held);
    free(v->logits);
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
    const replicas *r = v->replicas;
    counting all = { .validation = v, .experiment = r->experiment,
                     .first = r->item[0].number / r->count,
                     .step = r->experiment->replicas / r->count };
    pons_error problem = PONS_ERROR_INIT;

    result->stopped = false;
    all.count = calloc((size_t)(v->count * all.experiment->class_count) + 1, sizeof *all.count);
    if (all.count == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a validation");
    const spread_work work = { (v->count - all.first + all.step - 1) / all.step, prepare,
                               count_voxels, release, stop_asked, &all };
    if (spread_run(r, &work, &problem) == PONS_OK)
        summarise(&all, result);
    else if (problem.status == PONS_INTERRUPTED)
        result->stopped = true;
    else
        pons_fail(err, problem.status, "%s", problem.text);
    free(all.count);
    return err->status;
}
