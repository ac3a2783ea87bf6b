/*
 * evaluate_run.c - the held-out cases of resolved.ini through 'predict'.
 */
#include "evaluate/evaluate_run.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset/case_read.h"
#include "data/dataset/class_list.h"
#include "evaluate/validation.h"
#include "experiment/data_settings.h"

/* The classes that count: all of the target's but the background. */
static void take_classes(evaluation *e, const experiment *x)
{
    int first = validation_first_class(x);

    e->class_count = x->class_count - first;
    e->classes = x->classes + first;
}

/* The held-out cases of a data set, as they are predicted. */
typedef struct scoring {
    evaluation *evaluation;
    const experiment *experiment;
    const dataset *data;
} scoring;

/* What is found in a case: counts, or why there are none. */
typedef struct score {
    char problem[sizeof ((pons_error *)NULL)->text];
    metric_count count[CLASS_COUNT_MAX];
} score;

static pons_status score_case(void *context, int number, const predict_result *r,
                              const pons_error *problem, void *record, pons_error *err)
{
    const scoring *s = context;
    const experiment *x = s->experiment;
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
    int64_t voxels = pons_volume_count(&truth.label);
    if (x->regions)
        metric_count_regions(r->classes.voxels, truth.label.voxels, voxels, x->class_count,
                             found->count);
    else
        metric_count_labels(r->classes.voxels, truth.label.voxels, voxels, x->class_count,
                            found->count);
    case_clear(&truth);
    return PONS_OK;
}

static pons_status add_score(void *context, int number, const void *record, pons_error *err)
{
    const scoring *s = context;
    const score *found = record;

    if (found->problem[0] != '\0')
        return pons_fail(err, PONS_DATA, "%s", found->problem);
    return evaluation_add_counts(s->evaluation, s->data->cases[s->data->validation[number]].id,
                                 found->count + validation_first_class(s->experiment), err);
}

static pons_status score_cases(scoring *s, predictor *p, pons_error *err)
{
    const dataset *d = s->data;
    predict_input *input = arena_alloc(s->evaluation->memory,
                                       (size_t)d->validation_count * sizeof *input + 1);
    const predict_work work = { .count = d->validation_count, .input = input,
                                .force = true, /* cases of the run itself */
                                .record_size = sizeof(score), .take = score_case,
                                .tell = add_score, .context = s };

    if (d->validation_count == 0)
        return pons_fail(err, PONS_CONFIG, "the run has no validation cases");
    for (int i = 0; i < d->validation_count; i++) {
        const data_case *c = &d->cases[d->validation[i]];
        if (c->label == NULL)
            return pons_fail(err, PONS_DATA, "validation case '%s' has no label", c->id);
        input[i] = (predict_input){ c->id, c->image_count, c->image };
    }
    return predict_run(1, &p, &work, err);
}

static pons_status add_cases(evaluation *e, predictor *p, config *c, pons_error *err)
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
    score_cases(&all, p, err);
    dataset_close(d);
    return err->status;
}

pons_status evaluate_run(evaluation *e, const predict_source *source, logger *l, pons_error *err)
{
    char *file = arena_format(e->memory, "%s/resolved.ini", source->run);
    predictor *p = NULL;
    config *c = NULL;

    if (predictor_open(source, NULL, l, &p, err) != PONS_OK)
        return err->status;
    take_classes(e, predictor_experiment(p));
    if (config_open(file, source->set_count, source->set, &c, err) == PONS_OK)
        add_cases(e, p, c, err);
    /* The names must outlive the predictor. */
    data_class *classes = arena_alloc(e->memory, (size_t)e->class_count * sizeof *classes + 1);
    for (int i = 0; i < e->class_count; i++)
        classes[i].name = arena_string(e->memory, e->classes[i].name);
    e->classes = classes;
    if (c != NULL)
        config_close(c);
    e->told = predictor_rank(p) > 0;
    predictor_close(p, err);
    return err->status;
}
