/*
 * validation.c - predict, decide, count. What is reported and compared is the trainer's.
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

/* A case, and what is decided of it so far. */
typedef struct counted_case {
    pons_case c;
    uint8_t *decided;         /* [voxels][logits_decisions]                                       */
} counted_case;

static pons_status prepare(void *context, int number, spread_volume *out, pons_error *err)
{
    const counting *all = context;
    const validation *v = all->validation;
    counted_case *held = calloc(1, sizeof *held);

    if (held == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a validation case");
    out->held = held;
    pons_case *c = &held->c;
    if (cache_read(v->cache, v->ranks[all->first + number * all->step], c, err) != PONS_OK)
        return err->status;
    if (c->label.voxels == NULL)
        return pons_fail(err, PONS_DATA, "validation case '%s' has no label", c->name);
    held->decided = malloc((size_t)(pons_volume_count(&c->image)
                                    * logits_decisions(all->experiment)));
    if (held->decided == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the classes of case '%s'", c->name);
    out->network = v->replicas;
    memcpy(out->extent, c->image.extent, sizeof out->extent);
    out->image = c->image.voxels;
    return PONS_OK;
}

/* Voxels whose logits are turned into decisions. */
typedef struct deciding {
    const experiment *experiment;
    stitch *stitch;
    int64_t first;
    uint8_t *decided;         /* of the image                                                     */
} deciding;

enum { PIECE = 1 << 14, TILE = 16 * CLASS_COUNT_MAX };

static void decide_piece(void *context, int64_t first, int64_t end)
{
    const deciding *d = context;
    int64_t tile = TILE / d->experiment->task.classes;
    int decisions = logits_decisions(d->experiment);
    float logits[TILE];

    for (int64_t at = d->first + first; at < d->first + end; at += tile) {
        int64_t count = d->first + end - at < tile ? d->first + end - at : tile;

        stitch_take(d->stitch, at, count, logits);
        logits_decide(d->experiment, logits, count, d->decided + at * decisions);
    }
}

static pons_status decide(void *context, int number, spread_volume *v, stitch *s, int64_t first,
                          int64_t end, pons_error *err)
{
    const counting *all = context;
    int64_t plane = v->extent[1] * v->extent[2];
    const counted_case *held = v->held;
    deciding d = { all->experiment, s, first * plane, held->decided };

    parallel_run((end - first) * plane, PIECE, decide_piece, &d);
    if (end == v->extent[0] && !stitch_is_finite(s))
        log_warning(all->experiment->log, "validation: the logits of case '%s' are not finite",
                    held->c.name);
    return PONS_OK;
}

static pons_status count_voxels(void *context, int number, spread_volume *v, pons_error *err)
{
    const counting *all = context;
    const experiment *e = all->experiment;
    const counted_case *held = v->held;
    int64_t voxels = pons_volume_count(&held->c.image);
    metric_count *count = all->count + (all->first + number * all->step) * e->class_count;

    if (e->regions)
        metric_count_regions(held->decided, held->c.label.voxels, voxels, e->class_count, count);
    else
        metric_count_labels(held->decided, held->c.label.voxels, voxels, e->class_count, count);
    return PONS_OK;
}

static void release(void *context, spread_volume *v)
{
    counted_case *held = v->held;

    if (held == NULL)
        return;
    case_clear(&held->c);
    free(held->decided);
    free(held);
}

/* ---- several processes ----------------------------------------------------------------------- */

/* What a process tells of its share: whether it was stopped, then its counts, case by case. */
typedef struct share_counts {
    int64_t stopped;
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

/* Afterwards every process has the counts of all cases; it was stopped where one of them was. */
static pons_status exchange(counting *all, bool *stopped, pons_error *err)
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
    mine->stopped = *stopped;
    put_share(all, e->first, replicas, mine);
    if (group_all_gather(e->group, mine, size, theirs, err) != PONS_OK)
        goto release;
    for (int r = 0; r < replicas; r++) {
        const share_counts *s = (const share_counts *)(theirs + size * (size_t)r);

        *stopped = *stopped || s->stopped != 0;
        take_share(s, r, replicas, all);
    }
release:
    free(mine);
    free(theirs);
    return err->status;
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
    const spread_work work = {
        .count = ceil_div_int(v->count - all.first, all.step), .prepare = prepare,
        .take = decide, .finish = count_voxels, .release = release, .stop = stop_asked,
        .context = &all
    };
    spread_run(r, &work, &problem);
    result->stopped = problem.status == PONS_INTERRUPTED;
    if (problem.status != PONS_OK && !result->stopped)
        pons_fail(err, problem.status, "%s", problem.text);
    else if (all.experiment->group != NULL)
        exchange(&all, &result->stopped, err);
    if (err->status == PONS_OK && !result->stopped)
        summarise(&all, result);
    free(all.count);
    return err->status;
}
