/*
 * predict_internal.h - the job of pons predict, and functions shared by its files.
 */
#ifndef CORE_CLI_PREDICT_PREDICT_INTERNAL_H
#define CORE_CLI_PREDICT_PREDICT_INTERNAL_H

#include "base/arena.h"
#include "base/file/file_kind.h"
#include "base/progress.h"
#include "checkpoint/run_folds.h"
#include "cli/command.h"
#include "cli/predict/predict_classes.h"
#include "data/dataset/dataset.h"
#include "infer/predict_members.h"
#include "nnunet/nnunet_postprocess.h"

typedef struct predict_flags {
    const char *output, *config, *target, *previous;
    int64_t fold;            /* OPTION_AUTO: all                                                  */
    const char *folds;       /* NULL: all                                                         */
    bool no_mirror;
    int64_t passes, stride;
    bool logits, probabilities, uncertainty, any, force, label_map, no_postprocess, bids;
    int split;
} predict_flags;

typedef struct predict_job {
    const invocation *call;
    const predict_flags *flags;
    arena *memory;
    predictor *beside;       /* the first network opens on its devices; NULL: on its own          */
    int member_count;
    predictor *member[PREDICT_MEMBERS_MAX];
    predictor *dropped;      /* the network with its dropout, for --passes; or NULL               */
    int case_count, case_room;
    predict_input *cases;
    dataset **datasets;      /* sources of the cases, open until all are predicted                */
    int dataset_count;
    const char *nnunet_folds; /* of a folder of nnU-Net: "0_1_2"                                  */
    nnunet_postprocess postprocess; /* its rules for labels                                       */
    bool folder;             /* output is a folder                                                */
    const char **bids;       /* of each case, its path in a derivative of BIDS; NULL: it is none  */
    const char *stage;       /* this predicts the first stage of a cascade of that name; or NULL  */
    struct predict_job *first; /* the job of the first stage; NULL: none is predicted             */
    predict_classes table;   /* task = classification: the rows of all cases                      */
    int failed, first_failed; /* number of cases that could not be read; index of the first       */
    case_progress progress;
} predict_job;

/* ---- predict_tasks.c ------------------------------------------------------------------------- */

/* Rules of a task: the flags that it knows, the files of a case, and what is written. */
typedef struct predict_task {
    task_kind task;
    const char *output;      /* ending of -o with which the rules hold; "": any                   */
    pons_status (*check)(const predict_job *j, pons_error *err);
    /* The length of a file's stem without the end that tells its channel. */
    size_t (*stem)(const predict_job *j, const char *stem);
    bool masks_beside;       /* files of a folder that tell no channel are none, if any tells one */
    bool channels_optional;  /* a case of a dataset may lack files of channels                    */
    /* Complete a case; its files are as they were given. */
    pons_status (*arrange)(predict_job *j, predict_input *c, pons_error *err);
    /* Check -o; 'of_folder': a folder or a dataset is among the images. Sets 'folder'. */
    pons_status (*check_output)(predict_job *j, bool of_folder, pons_error *err);
    bool table;              /* all cases are rows of the file -o                                 */
    bool maps;               /* maps of slides are written                                        */
    /* Write the result of a case. 'record' has room for the probabilities of the classes. */
    pons_status (*write)(const predict_job *j, const char *path, const predict_result *r,
                         float *record, pons_error *err);
    /* Called after 'write' in all processes, in order of cases. */
    void (*tell)(predict_job *j, int number, const float *record);
    const char *ending;      /* of the files in a folder -o                                       */
    pons_status (*predict)(predict_job *j, pons_error *err); /* predicts and writes all cases     */
} predict_task;

/* The first rules of the networks' task that hold with the ending of -o. */
const predict_task *predict_task_of(const predict_job *j);
/* Refuse flags of volumes for a classification. */
pons_status predict_check_classification(const predict_job *j, pons_error *err);

/* ---- predict_networks.c ---------------------------------------------------------------------- */

/* Open the networks that RUN names, and with --passes the one with its dropout. */
pons_status predict_open_networks(predict_job *j, pons_error *err);
void predict_close_networks(predict_job *j, const pons_error *err);
/* Find the labels of a cascade's first stage, or the model that predicts them. */
pons_status predict_find_first_stage(predict_job *j, pons_error *err);
/* Predict the first stage. A case that fails has no labels then. */
pons_status predict_first_stage(predict_job *j, pons_error *err);

/* ---- predict_cases.c ------------------------------------------------------------------------- */

/* The number of channels of the first image, for weights whose file does not state it. */
int predict_count_channels(const char *argument);
/* List the cases of all arguments after RUN, and check -o. */
pons_status predict_list_cases(predict_job *j, pons_error *err);
/* The length of a stem without a channel's suffix like '_0000'. */
size_t predict_channel_stem(const predict_job *j, const char *stem);
/* Refuse a case of nnU-Net whose files, by the numbers in their names, are not all channels. */
pons_status predict_arrange_channels(predict_job *j, predict_input *c, pons_error *err);

/* ---- predict_paths.c ------------------------------------------------------------------------- */

/* The file of a case's labels, image or map; of a table, -o. */
const char *predict_path_of(const predict_job *j, int number);
/* A further file of a case, PATH_what.nii.gz. */
const char *predict_path_of_more(const predict_job *j, const char *path, const char *what);
const char *predict_path_of_probabilities(const predict_job *j, const char *labels);
/* A file beside the labels of a derivative of BIDS. */
const char *predict_path_beside(const predict_job *j, const char *labels, const char *ending);
/* The picture beside a map. */
const char *predict_path_of_overlay(const predict_job *j, const char *map);
/* Expect -o to be a file for one volume, else a folder. */
pons_status predict_check_volumes(predict_job *j, bool of_folder, pons_error *err);
/* Refuse results that would replace an input image or another result. */
pons_status predict_check_paths(const predict_job *j, pons_error *err);
/* Remove what killed processes have left of the files to be written. */
void predict_sweep_results(const predict_job *j);

/* ---- predict_segmentation.c ------------------------------------------------------------------ */

/* Refuse --target, and --label-map for regions of which one has no id of its own. */
pons_status predict_check_segmentation(const predict_job *j, pons_error *err);
/* Log the id by which each class of several ids is written. */
void predict_tell_ids(const predict_job *j);
/* Read the rules of a folder of nnU-Net; an ensemble of several folders has none. */
pons_status predict_open_postprocess(predict_job *j, pons_error *err);
pons_status predict_write_segmentation(const predict_job *j, const char *path,
                                       const predict_result *r, float *record, pons_error *err);
/*
 * Write [predict] tables: 'labels' and 'dseg' in the folder of predictions, or beside the file. A
 * derivative of BIDS has the table of each file beside it.
 */
pons_status predict_write_tables(const predict_job *j, pons_error *err);

/* ---- predict_volumes.c ----------------------------------------------------------------------- */

/* Predict and write all cases. One that cannot be read is named, and the others are predicted. */
pons_status predict_volumes(predict_job *j, pons_error *err);
/* Record a case that could not be read. Other cases are still written. */
pons_status predict_note_failure(predict_job *j, int number, const char *problem, pons_error *err);

/* ---- predict_maps.c -------------------------------------------------------------------------- */

/* Expect -o to be a map or a folder. The check precedes the search for slides. */
pons_status predict_check_slides(const predict_job *j, pons_error *err);
/* Expect -o to be a map for one slide, else a folder. */
pons_status predict_check_maps(predict_job *j, bool of_folder, pons_error *err);
/* Predict slides in order. One that cannot be read is named, and the others are predicted. */
pons_status predict_slides(predict_job *j, pons_error *err);

#endif
