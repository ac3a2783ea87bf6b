/*
 * predict_members.c - the networks of an ensemble, which share the devices of the first.
 */
#include "infer/predict_members.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "checkpoint/run_folds.h"
#include "nnunet/nnunet_model.h"

typedef struct members {
    predict_folds *folds;
    predict_source *source;
    const predictor *beside;
    logger *log;
    int count;
    predictor **item;
} members;

/* Expect the networks of an ensemble to be of the same stage of a cascade. */
static pons_status check_stage(const members *m, pons_error *err)
{
    const char *first = predictor_previous(m->item[0]);
    const char *last = predictor_previous(m->item[m->count - 1]);

    if ((first == NULL) == (last == NULL) && (first == NULL || strcmp(first, last) == 0))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "'%s' %s of a cascade, and another network of the ensemble "
                     "is not, expected one stage", m->source->run,
                     last != NULL ? "is the second stage" : "is no second stage");
}

static bool is_equal_class(const data_class *a, const data_class *b)
{
    return a->id_count == b->id_count
        && memcmp(a->id, b->id, (size_t)a->id_count * sizeof *a->id) == 0;
}

/* Expect the networks of an ensemble to predict classes, or regions, of equal ids. */
static pons_status check_classes(const members *m, pons_error *err)
{
    const experiment *first = predictor_experiment(m->item[0]);
    const experiment *last = predictor_experiment(m->item[m->count - 1]);
    bool equal = first->regions == last->regions && first->class_count == last->class_count;

    for (int c = 0; c < last->class_count && equal; c++)
        equal = is_equal_class(&first->classes[c], &last->classes[c]);
    return equal ? PONS_OK
           : pons_fail(err, PONS_CONFIG, "'%s' has labels or regions of other ids than the first "
                       "network of the ensemble, expected equal ones", m->source->run);
}

static pons_status open_member(members *m, const char *run, pons_error *err)
{
    if (m->count == PREDICT_MEMBERS_MAX)
        return pons_fail(err, PONS_USAGE, "more than %d networks in one ensemble",
                         PREDICT_MEMBERS_MAX);
    m->source->run = arena_string(m->folds->memory, run);
    if (predictor_open(m->source, m->count > 0 ? m->item[0] : m->beside, m->log,
                       &m->item[m->count], err) != PONS_OK)
        return err->status;
    m->count++;
    return check_stage(m, err) == PONS_OK ? check_classes(m, err) : err->status;
}

/* Open the fold that --fold names, finished or not. */
static pons_status open_fold(members *m, const char *run, pons_error *err)
{
    char *path = run_folds_path(run, (int)m->folds->fold);

    if (path == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
    if (folder_is_there(path))
        open_member(m, path, err);
    else
        pons_fail(err, PONS_CONFIG, "--fold %lld: '%s' is not there", (long long)m->folds->fold,
                  path);
    free(path);
    return err->status;
}

static pons_status open_finished_folds(members *m, const char *run, pons_error *err)
{
    run_folds folds;

    if (run_folds_finished(run, m->source->any, m->log, &folds, err) != PONS_OK)
        return err->status;
    for (int fold = 0; fold < folds.count && err->status == PONS_OK; fold++) {
        char *path = run_folds_path(run, fold);

        if (path == NULL)
            pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
        else if (folds.state[fold] == RUN_FOLD_FINISHED)
            open_member(m, path, err);
        free(path);
    }
    return err->status;
}

/* Open the fold of nnU-Net that a word of --folds names: "0" or "all". */
static pons_status open_nnunet_fold(members *m, const char *model, const char *word,
                                    pons_error *err)
{
    predict_folds *f = m->folds;
    const char *fold = arena_format(f->memory, "%s/fold_%s", model, word);

    if (!nnunet_is_fold(fold))
        return pons_fail(err, PONS_CONFIG, "'%s' holds no checkpoint_final.pth", fold);
    f->opened = arena_format(f->memory, "%s%s%s", f->opened, *f->opened != '\0' ? "_" : "", word);
    return open_member(m, fold, err);
}

static pons_status open_nnunet(members *m, const char *model, pons_error *err)
{
    const predict_folds *f = m->folds;
    char *list = f->list != NULL ? arena_string(f->memory, f->list) : NULL, *rest = NULL;
    int before = m->count;
    nnunet_folds folds;

    if (f->fold != OPTION_AUTO && f->list != NULL)
        return pons_fail(err, PONS_USAGE, "--fold and --folds name the same, expected one of them");
    if (f->fold != OPTION_AUTO)
        list = arena_format(f->memory, "%lld", (long long)f->fold);
    for (char *word = list != NULL ? strtok_r(list, ", ", &rest) : NULL;
         word != NULL && err->status == PONS_OK; word = strtok_r(NULL, ", ", &rest))
        open_nnunet_fold(m, model, word, err);
    if (list != NULL && err->status == PONS_OK && m->count == before)
        pons_fail(err, PONS_USAGE, "--folds '%s' names no fold, expected some such as 0,1",
                  f->list);
    if (list != NULL || nnunet_folds_find(model, &folds, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < folds.count && err->status == PONS_OK; i++)
        open_nnunet_fold(m, model, folds.name[i] + strlen("fold_"), err);
    return err->status;
}

/* Open the networks of a word of RUN: a network, or those of the folds in a folder. */
static pons_status open_run(members *m, const char *run, pons_error *err)
{
    bool one = m->folds->fold != OPTION_AUTO;

    if (nnunet_is_model(run))
        return open_nnunet(m, run, err);
    if (nnunet_refuse_part(run, err) != PONS_OK)
        return err->status;
    if (m->folds->list != NULL)
        return pons_fail(err, PONS_USAGE, "--folds is for a folder of nnU-Net, found '%s'\n"
                         "hint: --fold K takes one fold of a run", run);
    if (run_folds_are_there(run))
        return one ? open_fold(m, run, err) : open_finished_folds(m, run, err);
    if (one)
        return pons_fail(err, PONS_USAGE, "--fold %lld: '%s' holds no folds",
                         (long long)m->folds->fold, run);
    return open_member(m, run, err);
}

pons_status predict_members_open(predict_source *source, predict_folds *folds,
                                 const predictor *beside, logger *l,
                                 predictor *member[PREDICT_MEMBERS_MAX], int *count,
                                 pons_error *err)
{
    members m = { .folds = folds, .source = source, .beside = beside, .log = l, .item = member };
    char *list = arena_string(folds->memory, source->run), *rest = NULL;

    folds->opened = "";
    for (char *word = strtok_r(list, ",", &rest); word != NULL && err->status == PONS_OK;
         word = strtok_r(NULL, ",", &rest))
        open_run(&m, word, err);
    if (err->status == PONS_OK && m.count == 0)
        pons_fail(err, PONS_USAGE, "RUN is empty");
    *count = m.count;
    return err->status;
}
