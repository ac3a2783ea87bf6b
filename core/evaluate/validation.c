/*
 * validation.c - predict, decide and count the validation cases; the trainer reports the result.
 */
#include "evaluate/validation.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "cluster/group/group.h"
#include "data/dataset/case_read.h"
#include "data/dataset/class_list.h"
#include "infer/activation.h"
#include "infer/window_scheduler.h"

int validation_first_class(const experiment *e)
{
    return !e->regions && e->class_count > 1 ? 1 : 0;
}

/* All cases and their counts [case][class]. */
typedef struct counting {
    const validation *validation;
    const experiment *experiment;
    int first, step;          /* this process has cases first, first + step, ...                  */
    metric_count *count;
} counting;

static bool is_stopped(void *context)
{
    const validation *v = ((const counting *)context)->validation;

    return v->stop != NULL && v->stop(v->context);
}

/* A case, and the decided part of its prediction. */
typedef struct counted_case {
    pons_case c;
    uint8_t *decided;         /* [voxels][activation_decision_count]                              */
} counted_case;

static pons_status prepare_case(void *context, int number, window_scheduler_volume *out,
                                pons_error *err)
{
    const counting *all = context;
    const validation *v = all->validation;
    counted_case *caller_data = calloc(1, sizeof *caller_data);

    if (caller_data == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a validation case");
    out->caller_data = caller_data;
    pons_case *c = &caller_data->c;
    if (cache_read(v->cache, v->ranks[all->first + number * all->step], c, err) != PONS_OK)
        return err->status;
    if (c->label.voxels == NULL)
        return pons_fail(err, PONS_DATA, "validation case '%s' has no label", c->name);
    caller_data->decided = malloc((size_t)(pons_volume_count(&c->image)
                                           * activation_decision_count(all->experiment)));
    if (caller_data->decided == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the classes of case '%s'", c->name);
    out->network = v->replicas;
    memcpy(out->extent, c->image.extent, sizeof out->extent);
    out->image = c->image.voxels;
    return PONS_OK;
}

/* Voxels whose logits are decided in parallel. */
typedef struct deciding {
    const experiment *experiment;
    blender *blender;
    int64_t first;
    uint8_t *decided;         /* of the whole image                                               */
} deciding;

enum { PIECE = 1 << 14, TILE = 16 * CLASS_COUNT_MAX };

static void decide_piece(void *context, int64_t first, int64_t end)
{
    const deciding *d = context;
    int64_t tile = TILE / d->experiment->task.classes;
    int decisions = activation_decision_count(d->experiment);
    float logits[TILE];

    for (int64_t at = d->first + first; at < d->first + end; at += tile) {
        int64_t count = min_i64(d->first + end - at, tile);

        window_blend_take(d->blender, at, count, logits);
        activation_decide_logits(d->experiment, logits, count, d->decided + at * decisions);
    }
}

static pons_status decide_planes(void *context, int number, window_scheduler_volume *v, blender *s,
                                 int64_t first, int64_t end, pons_error *err)
{
    const counting *all = context;
    int64_t plane = v->extent[1] * v->extent[2];
    const counted_case *caller_data = v->caller_data;
    deciding d = { all->experiment, s, first * plane, caller_data->decided };

    parallel_run((end - first) * plane, PIECE, decide_piece, &d);
    if (end == v->extent[0] && !window_blend_is_finite(s))
        log_warning(all->experiment->log, "validation: the logits of case '%s' are not finite",
                    caller_data->c.name);
    return PONS_OK;
}

static pons_status count_voxels(void *context, int number, window_scheduler_volume *v,
                                pons_error *err)
{
    const counting *all = context;
    const experiment *e = all->experiment;
    const counted_case *caller_data = v->caller_data;
    int64_t voxels = pons_volume_count(&caller_data->c.image);
    metric_count *count = all->count + (all->first + number * all->step) * e->class_count;
    int64_t ignored = 0;

    if (e->data->ignored != NULL)
        ignored = metric_clear_ignored(caller_data->decided, caller_data->c.label.voxels, voxels,
                                       caller_data->c.label.channels, TARGET_IGNORED);
    if (e->regions)
        metric_count_regions(caller_data->decided, caller_data->c.label.voxels, voxels,
                             e->class_count, count);
    else
        metric_count_labels(caller_data->decided, caller_data->c.label.voxels, voxels,
                            e->class_count, count);
    metric_count_drop(count, e->class_count, e->regions, ignored);
    return PONS_OK;
}

static void release_case(void *context, window_scheduler_volume *v)
{
    counted_case *caller_data = v->caller_data;

    if (caller_data == NULL)
        return;
    case_clear(&caller_data->c);
    free(caller_data->decided);
    free(caller_data);
}

/* ---- several processes ----------------------------------------------------------------------- */

/* The message of a process: whether it was interrupted, then its counts, case by case. */
typedef struct share_counts {
    int64_t interrupted;
    metric_count count[];
} share_counts;

static void put_share(const counting *all, int first, int replicas, share_counts *to)
{
    int classes = all->experiment->class_count;

    for (int i = first, n = 0; i < all->validation->count; i += replicas, n++)
        memcpy(to->count + n * classes, all->count + i * classes,
               (size_t)classes * sizeof *to->count);
}

static void take_share(const share_counts *from, int first, int replicas, counting *all)
{
    int classes = all->experiment->class_count;

    for (int i = first, n = 0; i < all->validation->count; i += replicas, n++)
        memcpy(all->count + i * classes, from->count + n * classes,
               (size_t)classes * sizeof *from->count);
}

/* Every process then has the counts of all cases, and is interrupted where one of them is. */
static pons_status exchange_counts(counting *all, bool *interrupted, pons_error *err)
{
    const experiment *e = all->experiment;
    int replicas = e->replicas, cases = ceil_div_int(all->validation->count, replicas);
    size_t size = sizeof(share_counts)
                  + (size_t)(cases * e->class_count) * sizeof(metric_count);
    share_counts *mine = calloc(1, size);
    char *theirs = malloc(size * (size_t)replicas);

    if (mine == NULL || theirs == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for a validation");
        goto release;
    }
    mine->interrupted = *interrupted;
    put_share(all, e->first, replicas, mine);
    if (group_all_gather(e->group, mine, size, theirs, err) != PONS_OK)
        goto release;
    for (int r = 0; r < replicas; r++) {
        const share_counts *s = (const share_counts *)(theirs + size * (size_t)r);

        *interrupted = *interrupted || s->interrupted != 0;
        take_share(s, r, replicas, all);
    }
release:
    free(mine);
    free(theirs);
    return err->status;
}

/* Sum up in order of cases, so the bits do not depend on the number of replicas. */
static void summarise_cases(const counting *all, validation_result *result)
{
    int classes = all->experiment->class_count;

    memset(result->classes, 0, (size_t)classes * sizeof *result->classes);
    for (int i = 0; i < all->validation->count; i++)
        for (int c = 0; c < classes; c++) {
            class_score score = class_score_of_counts(all->count[i * classes + c]);
            metric_summary_add(&result->classes[c], &score);
        }
    result->cases = all->validation->count;
}

pons_status validation_run(const validation *v, validation_result *result, pons_error *err)
{
    const replicas *r = v->replicas;
    counting all = { .validation = v, .experiment = r->experiment,
                     .first = r->item[0].number / r->count,
                     .step = r->experiment->replicas / r->count };
    pons_error problem = PONS_ERROR_INIT;

    result->interrupted = false;
    all.count = calloc((size_t)(v->count * all.experiment->class_count) + 1, sizeof *all.count);
    if (all.count == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a validation");
    const window_scheduler_work work = {
        .count = ceil_div_int(v->count - all.first, all.step), .prepare = prepare_case,
        .take = decide_planes, .finish = count_voxels, .release = release_case,
        .stop = is_stopped, .context = &all
    };
    window_scheduler_run(r, &work, &problem);
    result->interrupted = problem.status == PONS_INTERRUPTED;
    if (problem.status != PONS_OK && !result->interrupted)
        pons_fail(err, problem.status, "%s", problem.text);
    else if (all.experiment->group != NULL)
        exchange_counts(&all, &result->interrupted, err);
    if (err->status == PONS_OK && !result->interrupted)
        summarise_cases(&all, result);
    free(all.count);
    return err->status;
}
