/*
 * validation.c - predict, decide and score the validation cases; the trainer reports the result.
 */
#include "evaluate/validation.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "cluster/group/group.h"
#include "data/case/case_read.h"
#include "data/dataset/class_list.h"
#include "evaluate/classification_score.h"
#include "evaluate/synthesis_score.h"
#include "infer/activation.h"
#include "infer/window_scheduler.h"
#include "metric/label_pair.h"

int validation_first_class(const experiment *e)
{
    return task_rules_of(&e->sections)->background && !e->regions && e->class_count > 1 ? 1 : 0;
}

/* The tolerance of nsd in millimetres, as the default of pons evaluate. */
static const double NSD_TOLERANCE = 1;

/* All cases and their scores [case][class]. */
typedef struct counting {
    const validation *validation;
    const experiment *experiment;
    int first, step;          /* this process has cases first, first + step, ...                  */
    class_score *score;
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

static void count_voxels(const experiment *e, const counted_case *caller_data, metric_count *count)
{
    int64_t voxels = pons_volume_count(&caller_data->c.image), ignored = 0;

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
}

/* Measure surfaces and lesions of all classes but the background, in millimetres. */
static pons_status score_masks(const counting *all, const counted_case *caller_data,
                               class_score *score, pons_error *err)
{
    const experiment *e = all->experiment;
    int first = validation_first_class(e), count = e->class_count - first;
    volume decided = caller_data->c.label;
    int32_t area[CLASS_COUNT_MAX];
    class_areas areas[CLASS_COUNT_MAX];
    label_pair p = { .prediction = &decided, .label = &caller_data->c.label,
                     .area_count = e->regions ? 2 : CLASS_COUNT_MAX, .class_count = count,
                     .classes = areas };

    decided.voxels = caller_data->decided;
    for (int c = 0; c < count; c++) {
        area[c] = e->regions ? 1 : c + first;
        areas[c] = (class_areas){ 1, &area[c] };
    }
    pons_volume_spacing(&caller_data->c.image, p.spacing);
    return label_pair_score(&p, all->validation->metrics, NSD_TOLERANCE, score + first, err);
}

static double badness_of(const counting *all, const class_score *score)
{
    int first = validation_first_class(all->experiment);

    return metric_badness(METRIC_DICE, metric_mean_of_classes(score + first,
                                                              all->experiment->class_count - first,
                                                              METRIC_DICE));
}

static pons_status score_case(void *context, int number, window_scheduler_volume *v,
                              pons_error *err)
{
    const counting *all = context;
    const validation *request = all->validation;
    int classes = all->experiment->class_count;
    const counted_case *caller_data = v->caller_data;
    class_score *score = all->score + (all->first + number * all->step) * classes;
    metric_count count[CLASS_COUNT_MAX];

    count_voxels(all->experiment, caller_data, count);
    for (int c = 0; c < classes; c++)
        score[c] = class_score_of_counts(count[c]);
    if (request->scored != NULL)
        request->scored(request->context, &(scored_case){
            .number = all->first + number * all->step, .c = &caller_data->c,
            .decided = caller_data->decided, .badness = badness_of(all, score) });
    return score_masks(all, caller_data, score, err);
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

/* ---- tasks ----------------------------------------------------------------------------------- */

static int own_count(const counting *all)
{
    return ceil_div_int(all->validation->count - all->first, all->step);
}

/* Devices take windows of one case while those of the next are prepared. */
static void score_segmentations(counting *all, pons_error *err)
{
    const window_scheduler_work work = {
        .count = own_count(all), .prepare = prepare_case,
        .take = decide_planes, .finish = score_case, .release = release_case,
        .stop = is_stopped, .context = all
    };

    window_scheduler_run(all->validation->replicas, &work, err);
}

/* The case of a synthesis that is sampled. */
typedef struct sampled_case {
    const validation *validation;
    int number;
    const pons_case *c;
} sampled_case;

static bool stop_sampling(void *context)
{
    const validation *v = ((const sampled_case *)context)->validation;

    return v->stop != NULL && v->stop(v->context);
}

static void tell_made(void *context, int target, const class_score *score, const float *made,
                      const float *truth)
{
    const sampled_case *s = context;
    const validation *v = s->validation;

    if (v->scored != NULL)
        v->scored(v->context, &(scored_case){
            .number = s->number, .c = s->c, .truth = truth, .made = made,
            .channel = target == 0 && s->c->image.channels > 1 ? 1 : 0,
            .badness = metric_badness(METRIC_PSNR, score->value[METRIC_PSNR]) });
}

/* Each case takes all steps of the diffusion, one after another. */
static void score_syntheses(counting *all, pons_error *err)
{
    const validation *v = all->validation;

    for (int n = 0; n < own_count(all) && err->status == PONS_OK; n++) {
        int number = all->first + n * all->step;
        pons_case c = { .size = sizeof c };

        if (cache_read(v->cache, v->ranks[number], &c, err) != PONS_OK)
            return;
        sampled_case s = { v, number, &c };

        synthesis_score_case(v->replicas, &c, &(synthesis_watch){ stop_sampling, tell_made, &s },
                             all->score + number * all->experiment->class_count, err);
        case_clear(&c);
    }
}

static void (*const score_cases[TASK_COUNT])(counting *all, pons_error *err) = {
    [TASK_SEGMENTATION] = score_segmentations, [TASK_SYNTHESIS] = score_syntheses,
};

/* ---- several processes ----------------------------------------------------------------------- */

/* The message of a process: whether it was interrupted, then its scores, case by case. */
typedef struct share_scores {
    int64_t interrupted;
    class_score score[];
} share_scores;

static void put_share(const counting *all, int first, int replicas, share_scores *to)
{
    int classes = all->experiment->class_count;

    for (int i = first, n = 0; i < all->validation->count; i += replicas, n++)
        memcpy(to->score + n * classes, all->score + i * classes,
               (size_t)classes * sizeof *to->score);
}

static void take_share(const share_scores *from, int first, int replicas, counting *all)
{
    int classes = all->experiment->class_count;

    for (int i = first, n = 0; i < all->validation->count; i += replicas, n++)
        memcpy(all->score + i * classes, from->score + n * classes,
               (size_t)classes * sizeof *from->score);
}

/* Every process then has the scores of all cases, and is interrupted where one of them is. */
static pons_status exchange_scores(counting *all, bool *interrupted, pons_error *err)
{
    const experiment *e = all->experiment;
    int replicas = e->replicas, cases = ceil_div_int(all->validation->count, replicas);
    size_t size = sizeof(share_scores)
                  + (size_t)(cases * e->class_count) * sizeof(class_score);
    share_scores *mine = calloc(1, size);
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
        const share_scores *s = (const share_scores *)(theirs + size * (size_t)r);

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
    int classes = all->experiment->class_count, first = validation_first_class(all->experiment);

    memset(result->classes, 0, ((size_t)classes + 1) * sizeof *result->classes);
    for (int i = 0; i < all->validation->count; i++) {
        const class_score *score = all->score + i * classes;
        class_score whole = class_score_of_counts((metric_count){ 0 });

        for (int c = 0; c < classes; c++)
            metric_summary_add(&result->classes[c], &score[c]);
        whole.value[METRIC_GENERALIZED_DICE] = metric_generalized_dice(score + first,
                                                                       classes - first);
        metric_summary_add(&result->classes[classes], &whole);
    }
    result->cases = all->validation->count;
}

/* Score each case by itself. */
static pons_status validate_cases(const validation *v, validation_result *result, pons_error *err)
{
    const replicas *r = v->replicas;
    counting all = { .validation = v, .experiment = r->experiment,
                     .first = r->item[0].number / r->count,
                     .step = r->experiment->replicas / r->count };
    pons_error problem = PONS_ERROR_INIT;

    result->interrupted = false;
    all.score = calloc((size_t)(v->count * all.experiment->class_count) + 1, sizeof *all.score);
    if (all.score == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a validation");
    score_cases[all.experiment->sections.experiment.task](&all, &problem);
    result->interrupted = problem.status == PONS_INTERRUPTED;
    if (problem.status != PONS_OK && !result->interrupted)
        pons_fail(err, problem.status, "%s", problem.text);
    else if (all.experiment->group != NULL)
        exchange_scores(&all, &result->interrupted, err);
    if (err->status == PONS_OK && !result->interrupted)
        summarise_cases(&all, result);
    if (result->scores != NULL)
        memcpy(result->scores, all.score,
               (size_t)(v->count * all.experiment->class_count) * sizeof *all.score);
    free(all.score);
    return err->status;
}

pons_status validation_run(const validation *v, validation_result *result, pons_error *err)
{
    static pons_status (*const validate[TASK_COUNT])(const validation *, validation_result *,
                                                     pons_error *) = {
        [TASK_SEGMENTATION] = validate_cases, [TASK_SYNTHESIS] = validate_cases,
        [TASK_CLASSIFICATION] = classification_validate,
    };

    return validate[v->replicas->experiment->sections.experiment.task](v, result, err);
}
