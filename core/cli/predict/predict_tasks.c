/*
 * predict_tasks.c - the rules of each task: the files of a case, and what is written.
 */
#include <string.h>

#include "base/text/text.h"
#include "cli/predict/predict_internal.h"
#include "cli/predict/predict_modalities.h"
#include "cli/predict/predict_patches.h"
#include "data/nifti/nifti_write.h"

/* ---- synthesis ------------------------------------------------------------------------------- */

static pons_status check_synthesis(const predict_job *j, pons_error *err)
{
    const predict_flags *f = j->flags;

    if (f->logits || f->probabilities || f->uncertainty || f->label_map || f->bids)
        return pons_fail(err, PONS_USAGE, "--logits, --probabilities, --uncertainty, --label-map "
                         "and --bids are for segmentation, found a network of task = synthesis");
    if (j->member_count > 1)
        return pons_fail(err, PONS_USAGE, "found %d networks of task = synthesis, expected one"
                         "\nhint: --fold 0 takes one of a cross-validation", j->member_count);
    return PONS_OK;
}

static size_t modality_stem(const predict_job *j, const char *stem)
{
    return predict_modalities_stem(predictor_experiment(j->member[0]), stem);
}

static pons_status arrange_synthesis(predict_job *j, predict_input *c, pons_error *err)
{
    return predict_modalities_arrange(predictor_experiment(j->member[0]), j->memory,
                                      j->flags->target, c, err);
}

static pons_status write_synthesis(const predict_job *j, const char *path, const predict_result *r,
                                   float *record, pons_error *err)
{
    return nifti_write(path, &r->image, &r->grid, err);
}

static void tell_volume(predict_job *j, int number, const float *record)
{
    log_line(j->call->log, "%s -> %.4000s", j->cases[number].name, predict_path_of(j, number));
}

/* ---- classification -------------------------------------------------------------------------- */

pons_status predict_check_classification(const predict_job *j, pons_error *err)
{
    const predict_flags *f = j->flags;

    if (f->no_mirror)
        return pons_fail(err, PONS_USAGE, "--no-mirror has no effect on a network of task = "
                         "classification, which has no flipped windows");
    if (f->logits || f->probabilities || f->uncertainty || f->label_map || f->target != NULL
        || f->bids)
        return pons_fail(err, PONS_USAGE, "--logits, --probabilities, --uncertainty, --label-map, "
                         "--target and --bids are for volumes, found a network of task = "
                         "classification, whose table has the probabilities");
    return PONS_OK;
}

static pons_status check_table(predict_job *j, bool of_folder, pons_error *err)
{
    for (int i = 0; i < j->case_count && err->status == PONS_OK; i++)
        predict_patches_check(predictor_experiment(j->member[0]), &j->cases[i], err);
    return err->status;
}

static pons_status write_classes(const predict_job *j, const char *path, const predict_result *r,
                                 float *record, pons_error *err)
{
    memcpy(record, r->probabilities.voxels, (size_t)r->probabilities.channels * sizeof *record);
    return PONS_OK;
}

/* One process writes the rows of all. */
static void tell_classes(predict_job *j, int number, const float *record)
{
    if (predictor_rank(j->member[0]) == 0)
        predict_classes_add(&j->table, j->cases[number].file[0], record);
}

static const predict_task tasks[] = {
    {
        .task = TASK_SEGMENTATION, .output = "", .ending = ".nii.gz",
        .check = predict_check_segmentation, .check_output = predict_check_volumes,
        .stem = predict_channel_stem, .arrange = predict_arrange_channels,
        .predict = predict_volumes, .write = predict_write_segmentation, .tell = tell_volume
    }, {
        .task = TASK_SYNTHESIS, .output = "", .ending = ".nii.gz",
        .check = check_synthesis, .check_output = predict_check_volumes,
        .stem = modality_stem, .arrange = arrange_synthesis,
        .masks_beside = true, .channels_optional = true,
        .predict = predict_volumes, .write = write_synthesis, .tell = tell_volume
    }, {
        .task = TASK_CLASSIFICATION, .output = ".csv", .ending = "", .table = true,
        .check = predict_check_classification, .check_output = check_table,
        .stem = predict_channel_stem, .arrange = predict_arrange_channels,
        .predict = predict_volumes, .write = write_classes, .tell = tell_classes
    }, { /* patches of slides */
        .task = TASK_CLASSIFICATION, .output = "", .ending = ".tiff", .maps = true,
        .check = predict_check_slides, .check_output = predict_check_maps,
        .stem = predict_channel_stem, .arrange = predict_arrange_channels,
        .predict = predict_slides
    }
};

const predict_task *predict_task_of(const predict_job *j)
{
    task_kind task = predictor_experiment(j->member[0])->sections.experiment.task;
    const predict_task *t = tasks;

    while (t->task != task || !text_ends_with(j->flags->output, t->output))
        t++;
    return t;
}
