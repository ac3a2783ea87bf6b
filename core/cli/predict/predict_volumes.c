/*
 * predict_volumes.c - predict all cases of a segmentation, a synthesis or a table of classes.
 */
#include <string.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/text/text.h"
#include "cli/predict/predict_internal.h"

pons_status predict_note_failure(predict_job *j, int number, const char *problem, pons_error *err)
{
    if (j->case_count == 1)
        return pons_fail(err, PONS_DATA, "%s", problem);
    if (j->failed++ == 0)
        j->first_failed = number;
    if (j->stage != NULL)
        j->cases[number].previous = NULL;
    if (predictor_rank(j->member[0]) == 0)
        log_error(j->call->log, problem);
    return PONS_OK;
}

/* The outcome of a case for all ranks: the error that prevented its result, or "". */
typedef struct outcome {
    char problem[sizeof ((pons_error *)NULL)->text];
    float probability[];     /* one for each class, if the task writes a table                    */
} outcome;

static pons_status take_result(void *context, int number, predict_result *r,
                               const pons_error *problem, void *record, pons_error *err)
{
    predict_job *j = context;
    outcome *o = record;

    if (r != NULL)
        j->progress.voxels += r->grid.extent[0] * r->grid.extent[1] * r->grid.extent[2];
    if (r != NULL)
        return predict_task_of(j)->write(j, predict_path_of(j, number), r, o->probability, err);
    memcpy(o->problem, problem->text, sizeof o->problem);
    return PONS_OK;
}

static void show_progress(void *context, int number, double share, int64_t voxels)
{
    predict_job *j = context;

    j->progress.next = voxels;
    if (predictor_rank(j->member[0]) == 0)
        case_progress_show(&j->progress, j->call->log, number, share);
}

static pons_status tell_result(void *context, int number, const void *record, pons_error *err)
{
    predict_job *j = context;
    const outcome *o = record;

    if (o->problem[0] != '\0')
        return predict_note_failure(j, number, o->problem, err);
    predict_task_of(j)->tell(j, number, o->probability);
    return PONS_OK;
}

/* Complete the table of all cases, also where some of them could not be read. */
static void close_table(predict_job *j, pons_error *err)
{
    int rows = j->case_count - j->failed;

    if (j->table.open && predict_classes_close(&j->table, err) == PONS_OK && rows > 0)
        log_line(j->call->log, "%d image%s -> %.4000s", rows, text_plural(rows),
                 j->flags->output);
}

pons_status predict_volumes(predict_job *j, pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);
    size_t classes = (size_t)e->class_count;
    const predict_work work = {
        .count = j->case_count, .input = j->cases, .logits = j->flags->logits,
        .probabilities = j->flags->probabilities, .force = j->flags->force,
        .uncertainty = j->flags->uncertainty, .dropout_passes = (int)j->flags->passes,
        .dropped = j->dropped,
        .record_size = sizeof(outcome) + (predict_task_of(j)->table ? classes * sizeof(float) : 0),
        .take = take_result, .tell = tell_result, .progress = show_progress, .context = j
    };

    if (j->flags->stride > 0)
        return pons_fail(err, PONS_USAGE, "--stride is for maps of slides");
    if (predict_task_of(j)->table && predictor_rank(j->member[0]) == 0)
        predict_classes_open(&j->table, e, j->flags->output, err);
    if (predict_task_of(j)->table && predictor_share(j->member[0], err) != PONS_OK)
        return err->status;
    j->progress = (case_progress){ "predicting", j->case_count, seconds_now(), 0, 0 };
    predict_run(j->member_count, j->member, &work, err);
    case_progress_end(j->call->log);
    close_table(j, err);
    if (err->status != PONS_OK || e->sections.experiment.task != TASK_SEGMENTATION
        || j->stage != NULL || j->failed == j->case_count)
        return err->status;
    if (predictor_rank(j->member[0]) == 0)
        predict_write_tables(j, err);
    return predictor_share(j->member[0], err);
}
