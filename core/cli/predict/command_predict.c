/*
 * command_predict.c - pons predict: its options, and the order of its steps.
 */
#include "cli/predict/predict_internal.h"

enum { PASSES_MAX = 1000 };

static const char *const all_words[] = { "all", NULL };
static const char *const splits[] = { "auto", "test", "all", NULL };

static const pons_option flags[] = {
    PONS_TEXT(predict_flags, output, NULL, "File for one image, else a folder. A "
              "classification writes a table .csv of all images, or of a slide a map .tiff, and "
              "maps of several slides to a folder."),
    PONS_TEXT(predict_flags, config, "", "INI file for a bare weights file. In a checkpoint's "
              "folder its manifest says what training saw."),
    PONS_TEXT(predict_flags, target, "", "Modality that a network of task = synthesis makes from "
              "the others; empty: the one that has no file."),
    PONS_INTEGER_OR(predict_flags, fold, "all", 0, RUN_FOLDS_MAX - 1, all_words,
                    "Fold of a cross-validation to use; all: the average of the probabilities of "
                    "all finished folds. An ensemble of any networks is RUN,RUN."),
    PONS_TEXT(predict_flags, folds, "", "Folds of a folder of nnU-Net, such as 0,1; empty: all "
              "that have a checkpoint."),
    PONS_TEXT(predict_flags, previous, "", "Of a cascade: the model folder of its first stage, or "
              "the labels that it predicted, a folder or one file; empty: the model folder that "
              "nnU-Net puts beside RUN."),
    PONS_FLAG(predict_flags, no_mirror, "no", "Predict no flipped windows."),
    PONS_FLAG(predict_flags, logits, "no", "Also write OUT_logits.nii.gz (4D, class last)."),
    PONS_FLAG(predict_flags, probabilities, "no", "Also write OUT_probabilities.nii.gz."),
    PONS_FLAG(predict_flags, uncertainty, "no",
              "Also write OUT_entropy.nii.gz and OUT_variance.nii.gz: of the probabilities over "
              "folds or networks, of a single network over the flips of [window] mirror or "
              "--passes."),
    PONS_INTEGER(predict_flags, passes, "0", 0, PASSES_MAX,
                 "With --uncertainty of a single network: passes with its dropout."),
    PONS_INTEGER(predict_flags, stride, "0", 0, 1 << 20, "Pixels between the patches of a slide, "
                 "and so from point to point of its map; 0: the patches' side."),
    PONS_FLAG(predict_flags, any, "no",
              "Where the run's best checkpoint is damaged, take another and warn."),
    PONS_CHOICE(predict_flags, split, "auto", splits, "Cases of a dataset; auto: those for tests "
                "if it has some, else all."),
    PONS_FLAG(predict_flags, label_map, "no", "Write regions as one label: each region in order "
              "writes its id that no later region has."),
    PONS_FLAG(predict_flags, no_postprocess, "no", "Leave labels as they are where a folder of "
              "nnU-Net has a postprocessing.json, which keeps the largest part of some."),
    PONS_FLAG(predict_flags, bids, "no", "Write OUT as a derivative of BIDS, with names such as "
              "OUT/sub-01/anat/sub-01_dseg.nii.gz after those of the images."),
    PONS_FLAG(predict_flags, force, "no", "Take an image as it is whose orientation training never "
              "saw."),
    PONS_OPTIONS_END
};

/* Open the networks and find the cases; nothing is written before all are known and allowed. */
static pons_status prepare(predict_job *j, pons_error *err)
{
    if (predict_open_networks(j, err) == PONS_OK
        && predict_task_of(j)->check(j, err) == PONS_OK
        && predict_open_postprocess(j, err) == PONS_OK
        && predict_list_cases(j, err) == PONS_OK
        && predict_find_first_stage(j, err) == PONS_OK
        && predict_check_paths(j, err) == PONS_OK)
        predict_tell_ids(j);
    return err->status;
}

static pons_status predict_cases(predict_job *j, pons_error *err)
{
    predict_sweep_results(j);
    predict_task_of(j)->predict(j, err);
    if (err->status == PONS_OK && j->failed > 0)
        pons_fail(err, PONS_DATA, "%d of %d cases could not be predicted, the first is '%s'",
                  j->failed, j->case_count, j->cases[j->first_failed].name);
    return err->status;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    predict_job j = { .call = call, .flags = given, .memory = arena_new(), .nnunet_folds = "" };

    if (j.memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (prepare(&j, err) == PONS_OK && predict_first_stage(&j, err) == PONS_OK)
        predict_cases(&j, err);
    if (j.first != NULL)
        predict_close_networks(j.first, err);
    predict_close_networks(&j, err);
    while (j.dataset_count-- > 0)
        dataset_close(j.datasets[j.dataset_count]);
    arena_free(j.memory);
    return err->status;
}

const command command_predict = {
    "predict", "segment or classify images with a trained network", "RUN[,RUN...] "
    "IMAGE[,CHANNEL...]... -o OUT", flags,
    sizeof(predict_flags), "o=output", 2, -1, run
};
