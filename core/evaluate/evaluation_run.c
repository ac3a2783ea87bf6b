/*
 * evaluation_run.c - predict and score the held-out cases of a run, or of the folds of a
 * cross-validation.
 */
#include "evaluate/evaluation_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash/name_index.h"
#include "base/progress.h"
#include "checkpoint/run_folds.h"
#include "cluster/group/group.h"
#include "data/case/case_read.h"
#include "data/dataset/class_list.h"
#include "evaluate/decisions.h"
#include "evaluate/synthesis_score.h"
#include "evaluate/validation.h"
#include "experiment/data_settings.h"
#include "nnunet/nnunet_model.h"

/* Set the classes of the target without the background. */
static void set_classes(evaluation *e, const experiment *x)
{
    int first = validation_first_class(x);

    e->class_count = x->class_count - first;
    e->classes = x->classes + first;
}

/* Refuse metrics that the run's task does not measure. None stands for the task's own. */
static pons_status choose_metrics(evaluation *e, const experiment *x, pons_error *err)
{
    const task_rules *rules = task_rules_of(&x->sections);

    if ((e->metrics & ~rules->selecting) != 0)
        return pons_fail(err, PONS_USAGE, "--metrics has some that task = %s does not measure",
                         task_words[x->sections.experiment.task]);
    if (e->asks_surfaces != NULL
        && metric_set_from(rules->selecting | rules->evaluated, METRIC_OF_SURFACES) == 0)
        return pons_fail(err, PONS_USAGE, "--%s is for surfaces of labels, which task = %s does "
                         "not have", e->asks_surfaces,
                         task_words[x->sections.experiment.task]);
    if (e->metrics != 0)
        return PONS_OK;
    e->metrics = rules->evaluated;
    e->order = metric_kind_find(arena_format(e->memory, "%.*s", (int)strcspn(rules->best, "."),
                                             rules->best));
    return PONS_OK;
}

/* The held-out cases that are predicted. */
typedef struct scoring {
    evaluation *evaluation;
    const experiment *experiment;
    const dataset *data;
    case_progress progress;
} scoring;

/* The result of a case: scores, or the problem. */
typedef struct score {
    char problem[sizeof ((pons_error *)NULL)->text];
    class_score class[CLASS_COUNT_MAX]; /* without the background                                 */
} score;

/*
 * Change regions to what their file says where [predict] region_ids writes them as one label: those
 * that list the id of the last region of a voxel.
 */
static void take_written_regions(const experiment *x, const volume *regions)
{
    const pons_integers *ids = &x->sections.predict.region_ids;
    int64_t values = pons_volume_count(regions) * regions->channels;
    uint8_t *voxel = regions->voxels;

    for (int64_t at = 0; at < values && ids->count > 0; at += regions->channels) {
        int last = regions->channels - 1;

        while (last >= 0 && voxel[at + last] == 0)
            last--;
        for (int r = 0; r < regions->channels && last >= 0; r++)
            voxel[at + r] = class_index_of_id(&x->classes[r], 1, (int)ids->item[last]) == 0;
    }
}

/* Areas are class indices; in volumes of regions each class has its channel. */
static pons_status score_classes(const scoring *s, const volume *prediction, const volume *label,
                                 score *out, pons_error *err)
{
    const experiment *x = s->experiment;
    int first = validation_first_class(x), count = x->class_count - first;
    int64_t voxels = pons_volume_count(label);
    int64_t ignored = 0;
    metric_count found[CLASS_COUNT_MAX];
    int32_t area[CLASS_COUNT_MAX];
    class_areas list[CLASS_COUNT_MAX];

    if (s->data->ignored != NULL)
        ignored = metric_clear_ignored(prediction->voxels, label->voxels, voxels, label->channels,
                                       TARGET_IGNORED);
    if (x->regions)
        metric_count_regions(prediction->voxels, label->voxels, voxels, x->class_count, found);
    else
        metric_count_labels(prediction->voxels, label->voxels, voxels, x->class_count, found);
    metric_count_drop(found, x->class_count, x->regions, ignored);
    for (int c = 0; c < count; c++) {
        out->class[c] = class_score_of_counts(found[first + c]);
        area[c] = x->regions ? 1 : first + c;
        list[c] = (class_areas){ 1, &area[c] };
    }
    return evaluation_score_masks(s->evaluation, prediction, label, list, 256, out->class, err);
}

static pons_status score_case(void *context, int number, predict_result *r,
                              const pons_error *problem, void *record, pons_error *err)
{
    const scoring *s = context;
    int rank = s->data->validation[number];
    score *found = record;
    pons_case truth;

    if (r == NULL) {
        memcpy(found->problem, problem->text, sizeof found->problem);
        return PONS_OK;
    }
    memset(&truth, 0, sizeof truth);
    if (case_read(s->data, rank, &truth, err) != PONS_OK)
        return err->status;
    packed_case_mark_ignored(&truth);
    take_written_regions(s->experiment, &r->classes);
    score_classes(s, &r->classes, &truth.label, found, err);
    case_clear(&truth);
    return err->status;
}

static void show_progress(void *context, int number, double share, int64_t voxels)
{
    scoring *s = context;

    if (s->experiment->group == NULL || group_rank(s->experiment->group) == 0)
        case_progress_show(&s->progress, s->experiment->log, number, share);
}

static pons_status add_score(void *context, int number, const void *record, pons_error *err)
{
    const scoring *s = context;
    const score *found = record;

    if (found->problem[0] != '\0')
        return pons_fail(err, PONS_DATA, "%s", found->problem);
    return evaluation_add_scores(s->evaluation, s->data->cases[s->data->validation[number]].id,
                                 found->class, err);
}

/* Find the labels of a cascade's first stage. */
static pons_status find_previous(const evaluation *e, const predictor *p, int count,
                                 predict_input *input, pons_error *err)
{
    const char *stage = predictor_previous(p);

    if (stage == NULL && e->previous == NULL)
        return PONS_OK;
    if (stage == NULL)
        return pons_fail(err, PONS_USAGE, "--previous '%s' is for the second stage of a cascade, "
                         "found another network", e->previous);
    if (e->previous == NULL)
        return pons_fail(err, PONS_CONFIG, "the network is the second stage of a cascade, and the "
                         "labels of its first, '%s', are not given\nhint: --previous FOLDER, with "
                         "CASE.nii.gz as pons predict writes it", stage);
    return predict_find_previous(e->memory, e->previous, count, input, err);
}

static pons_status score_cases(scoring *s, predictor *p, pons_error *err)
{
    const dataset *d = s->data;
    predict_input *input = arena_alloc(s->evaluation->memory,
                                       (size_t)d->validation_count * sizeof *input + 1);
    const predict_work work = { .count = d->validation_count, .input = input,
                                .force = true, /* cases of the run need no check of orientation */
                                .record_size = sizeof(score), .take = score_case,
                                .tell = add_score, .progress = show_progress,
                                .context = s };

    if (d->validation_count == 0)
        return pons_fail(err, PONS_CONFIG, "the run has no validation cases");
    for (int i = 0; i < d->validation_count; i++) {
        const data_case *c = &d->cases[d->validation[i]];
        if (c->label == NULL)
            return pons_fail(err, PONS_DATA, "validation case '%s' has no label", c->id);
        input[i] = (predict_input){ .name = c->id, .file_count = c->image_count, .file = c->image };
    }
    if (find_previous(s->evaluation, p, d->validation_count, input, err) != PONS_OK)
        return err->status;
    s->progress = (case_progress){ "evaluating", d->validation_count, seconds_now(), 0, 0 };
    predict_run(1, &p, &work, err);
    case_progress_end(s->experiment->log);
    return err->status;
}

static bool note_progress(void *context)
{
    const scoring *s = context;

    if (s->experiment->group != NULL)
        group_note(s->experiment->group, 0, "evaluation");
    return false;
}

/* Score a held-out case on its preprocessed grid. */
static pons_status score_synthesis(scoring *s, predictor *p, int number, class_score *out,
                                   pons_error *err)
{
    const experiment *x = s->experiment;
    pons_case c;

    if (case_read(s->data, s->data->validation[number], &c, err) != PONS_OK)
        return err->status;
    if (pipeline_apply(x->preprocess, PIPELINE_VALIDATION, &c, x->log, err) == PONS_OK)
        synthesis_score_case(predictor_replicas(p), &c,
                             &(synthesis_watch){ note_progress, NULL, s }, out, err);
    case_clear(&c);
    return err->status;
}

/* Processes divide the cases, one each in a round. All processes then add the scores of a round. */
static pons_status score_syntheses(scoring *s, predictor *p, pons_error *err)
{
    const dataset *d = s->data;
    group *g = s->experiment->group;
    int size = g != NULL ? group_size(g) : 1, rank = g != NULL ? group_rank(g) : 0;
    size_t count = (size_t)s->experiment->class_count;
    class_score *mine = calloc(count, sizeof *mine);
    class_score *all = calloc((size_t)size * count, sizeof *all);

    if (d->validation_count == 0)
        pons_fail(err, PONS_CONFIG, "the run has no validation cases");
    if (mine == NULL || all == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for the scores of an evaluation");
    s->progress = (case_progress){ "evaluating", d->validation_count, seconds_now(), 0, 0 };
    for (int first = 0; first < d->validation_count && err->status == PONS_OK; first += size) {
        show_progress(s, first, 0, 0);
        if (first + rank < d->validation_count
            && score_synthesis(s, p, first + rank, mine, err) != PONS_OK)
            break;
        if (g == NULL)
            memcpy(all, mine, count * sizeof *mine);
        else if (group_all_gather(g, mine, count * sizeof *mine, all, err) != PONS_OK)
            break;
        for (int r = 0; r < size && first + r < d->validation_count && err->status == PONS_OK; r++)
            evaluation_add_scores(s->evaluation, d->cases[d->validation[first + r]].id,
                                  all + (size_t)r * count, err);
    }
    case_progress_end(s->experiment->log);
    free(mine);
    free(all);
    return err->status;
}

/* ---- classification -------------------------------------------------------------------------- */

/* The result of an image: the problem, or its probabilities. */
typedef struct image_score {
    char problem[sizeof ((pons_error *)NULL)->text];
    float probability[];
} image_score;

static pons_status take_probabilities(void *context, int number, predict_result *r,
                                      const pons_error *problem, void *record, pons_error *err)
{
    image_score *s = record;

    if (r == NULL)
        memcpy(s->problem, problem->text, sizeof s->problem);
    else
        memcpy(s->probability, r->probabilities.voxels, pons_volume_size(&r->probabilities));
    return PONS_OK;
}

static pons_status add_decision(void *context, int number, const void *record, pons_error *err)
{
    const scoring *s = context;
    const data_case *c = &s->data->cases[s->data->validation[number]];
    const image_score *found = record;

    if (found->problem[0] != '\0')
        return pons_fail(err, PONS_DATA, "%s", found->problem);
    decisions_add(s->evaluation, c->id, c->class_index, found->probability);
    return PONS_OK;
}

static pons_status score_images(scoring *s, predictor *p, pons_error *err)
{
    const dataset *d = s->data;
    predict_input *input = arena_alloc(s->evaluation->memory,
                                       (size_t)d->validation_count * sizeof *input + 1);
    const predict_work work = {
        .count = d->validation_count, .input = input, .force = true,
        .record_size = sizeof(image_score)
                       + (size_t)s->experiment->class_count * sizeof(float),
        .take = take_probabilities, .tell = add_decision, .progress = show_progress, .context = s
    };

    if (d->validation_count == 0)
        return pons_fail(err, PONS_CONFIG, "the run has no validation cases");
    for (int i = 0; i < d->validation_count; i++) {
        const data_case *c = &d->cases[d->validation[i]];
        if (c->class_index < 0)
            return pons_fail(err, PONS_DATA, "validation case '%s' has no class", c->id);
        input[i] = (predict_input){ .name = c->id, .file_count = c->image_count,
                                    .file = c->image, .stack = c->stack, .slice = c->slice,
                                    .patch = c->patch };
    }
    s->progress = (case_progress){ "evaluating", d->validation_count, seconds_now(), 0, 0 };
    predict_run(1, &p, &work, err);
    case_progress_end(s->experiment->log);
    return err->status;
}

static pons_status (*const score_task[TASK_COUNT])(scoring *s, predictor *p, pons_error *err) = {
    [TASK_SEGMENTATION] = score_cases, [TASK_SYNTHESIS] = score_syntheses,
    [TASK_CLASSIFICATION] = score_images,
};

static pons_status predict_cases(evaluation *e, predictor *p, config *c, pons_error *err)
{
    scoring all = { .evaluation = e, .experiment = predictor_experiment(p) };
    dataset_settings settings;
    dataset *d = NULL;
    sections s;

    memset(&s, 0, sizeof s);
    if (sections_fill(c, &s, err) != PONS_OK)
        return err->status;
    dataset_settings_fill(c, &s, &settings);
    if (dataset_open(&settings, &d, err) != PONS_OK)
        return dataset_blame(c, &s, err);
    all.data = d;
    score_task[all.experiment->sections.experiment.task](&all, p, err);
    dataset_close(d);
    return err->status;
}

/*
 * Copy the names of the classes, which must outlive the predictor. PONS_CONFIG: the classes of an
 * earlier fold, if 'known', are others.
 */
static pons_status keep_classes(evaluation *e, const data_class *known, int known_count,
                                const char *run, pons_error *err)
{
    data_class *classes = arena_alloc(e->memory, (size_t)e->class_count * sizeof *classes + 1);
    bool same = known == NULL || known_count == e->class_count;

    for (int i = 0; i < e->class_count; i++) {
        classes[i].name = arena_string(e->memory, e->classes[i].name);
        same = same && (known == NULL || strcmp(known[i].name, classes[i].name) == 0);
    }
    e->classes = classes;
    return same ? PONS_OK : pons_fail(err, PONS_CONFIG, "'%s' has other classes than the folds "
                                      "before it", run);
}

/* Whether --set gives a key. */
static bool is_set(const predict_source *source, const char *key)
{
    for (int i = 0; i < source->set_count; i++)
        if (strncmp(source->set[i], key, strlen(key)) == 0 && source->set[i][strlen(key)] == '=')
            return true;
    return false;
}

/* Open the configuration of a run's data; that of a fold of nnU-Net has them from --set alone. */
static pons_status open_config(const evaluation *e, const predict_source *source, config **out,
                               pons_error *err)
{
    nnunet_model *m = NULL;

    if (!nnunet_is_fold(source->run))
        return config_open(arena_format(e->memory, "%s/resolved.ini", source->run),
                           source->set_count, source->set, out, err);
    if (!is_set(source, "data.source") && !is_set(source, "data.image"))
        return pons_fail(err, PONS_USAGE, "'%s' is a model of nnU-Net, which names no dataset"
                         "\nhint: --set data.source=DATASET", source->run);
    if (nnunet_model_open(source->run, &m, err) == PONS_OK)
        nnunet_model_config(m, source->set_count, source->set, out, err);
    nnunet_model_close(m);
    return err->status;
}

/* Open the network of a run, and score its held-out cases. 'beside' as of predictor_open. */
static pons_status score_run(evaluation *e, const predict_source *source, const predictor *beside,
                             logger *l, predictor **out, pons_error *err)
{
    const data_class *known = beside != NULL ? e->classes : NULL;
    int known_count = e->class_count;
    config *c = NULL;

    if (predictor_open(source, beside, l, out, err) != PONS_OK)
        return err->status;
    set_classes(e, predictor_experiment(*out));
    if (choose_metrics(e, predictor_experiment(*out), err) == PONS_OK
        && keep_classes(e, known, known_count, source->run, err) == PONS_OK
        && open_config(e, source, &c, err) == PONS_OK)
        predict_cases(e, *out, c, err);
    if (c != NULL)
        config_close(c);
    e->printed_elsewhere = predictor_rank(*out) > 0;
    return err->status;
}

/* ---- folds ----------------------------------------------------------------------------------- */

/* The cases that are scored, each an item of 'cases' or of 'decisions'. */
static int scored_count(const evaluation *e)
{
    return e->decisions != NULL ? e->decisions->count : e->case_count;
}

static const char *scored_name(const evaluation *e, int number)
{
    return e->decisions != NULL ? e->decisions->name[number] : e->cases[number].name;
}

/* Refuse a case of the last fold that an earlier fold holds out too; 'known' has theirs. */
static pons_status check_fold(const evaluation *e, const evaluated_fold *f, name_index *known,
                              pons_error *err)
{
    for (int i = f->first; i < f->end; i++) {
        const char *name = scored_name(e, i);
        int earlier = name_index_add(known, "", name, i);

        if (earlier < 0)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        if (earlier < f->first)
            return pons_fail(err, PONS_CONFIG, "case '%s' is held out by fold %d and fold %d, "
                             "expected one\nhint: all folds need the same cases and seed", name,
                             evaluation_fold_of(e, earlier), f->number);
    }
    return PONS_OK;
}

/* Folds that are scored one by one. Their networks share devices and processes. */
typedef struct fold_scoring {
    evaluation *evaluation;
    const predict_source *source;
    logger *log;
    evaluated_fold *list;
    predictor *first, *other;
    name_index known;
} fold_scoring;

static pons_status score_fold(fold_scoring *s, const char *run, int number, pons_error *err)
{
    evaluation *e = s->evaluation;
    predict_source one = *s->source;
    evaluated_fold *f = &s->list[e->fold_count];

    one.run = run;
    *f = (evaluated_fold){ number, scored_count(e), 0 };
    score_run(e, &one, s->first, s->log, s->first == NULL ? &s->first : &s->other, err);
    predictor_close(s->other, err);
    s->other = NULL;
    f->end = scored_count(e);
    if (err->status == PONS_OK && check_fold(e, f, &s->known, err) == PONS_OK)
        e->fold_count++;
    return err->status;
}

static fold_scoring begin_folds(evaluation *e, const predict_source *source, logger *l, int most)
{
    fold_scoring s = { .evaluation = e, .source = source, .log = l };

    e->folds = s.list = arena_alloc(e->memory, (size_t)most * sizeof *s.list);
    return s;
}

static pons_status end_folds(fold_scoring *s, pons_error *err)
{
    name_index_clear(&s->known);
    predictor_close(s->first, err);
    return err->status;
}

/* Score each case by the fold that holds it out. */
static pons_status score_folds(evaluation *e, const predict_source *source, logger *l,
                               pons_error *err)
{
    fold_scoring s = begin_folds(e, source, l, RUN_FOLDS_MAX);
    run_folds folds;

    run_folds_finished(source->run, source->any, l, &folds, err);
    for (int n = 0; n < folds.count && err->status == PONS_OK; n++)
        if (folds.state[n] == RUN_FOLD_FINISHED)
            score_fold(&s, arena_format(e->memory, "%s/fold_%d", source->run, n), n, err);
    return end_folds(&s, err);
}

/* ---- nnU-Net --------------------------------------------------------------------------------- */

/* The source of a fold: its held-out cases are those of this fold of the dataset's splits. */
static predict_source fold_source(evaluation *e, const predict_source *source, const char *fold)
{
    predict_source one = *source;
    const char **set = arena_alloc(e->memory, ((size_t)one.set_count + 2) * sizeof *set);
    const char *slash = strrchr(fold, '/'), *name = slash != NULL ? slash + 1 : fold;
    const char *number = name + strcspn(name, "0123456789");

    if (source->set_count > 0)
        memcpy(set, source->set, (size_t)source->set_count * sizeof *set);
    if (!is_set(source, "data.validation")) {
        set[one.set_count++] = "data.validation=own";
        if (*number != '\0' && !is_set(source, "data.fold"))
            set[one.set_count++] = arena_format(e->memory, "data.fold=%d", atoi(number));
    }
    one.run = fold;
    one.set = set;
    return one;
}

static pons_status score_nnunet(evaluation *e, const predict_source *source, logger *l,
                                pons_error *err)
{
    fold_scoring s = begin_folds(e, source, l, NNUNET_FOLDS_MAX);
    nnunet_folds folds = { .count = 0 };

    nnunet_folds_find(source->run, &folds, err);
    for (int n = 0; n < folds.count && err->status == PONS_OK; n++) {
        const char *fold = arena_format(e->memory, "%s/%s", source->run, folds.name[n]);
        predict_source one = fold_source(e, source, fold);

        s.source = &one;
        score_fold(&s, fold, atoi(folds.name[n] + strlen("fold_")), err);
    }
    return end_folds(&s, err);
}

pons_status evaluation_run(evaluation *e, const predict_source *source, logger *l, pons_error *err)
{
    predict_source one = *source;
    predictor *p = NULL;

    if (nnunet_is_model(source->run))
        return score_nnunet(e, source, l, err);
    if (nnunet_refuse_part(source->run, err) != PONS_OK)
        return err->status;
    if (run_folds_are_there(source->run))
        return score_folds(e, source, l, err);
    if (nnunet_is_fold(source->run))
        one = fold_source(e, source, source->run);
    score_run(e, &one, NULL, l, &p, err);
    predictor_close(p, err);
    return err->status;
}
