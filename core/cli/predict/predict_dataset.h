/*
 * predict_dataset.h - the cases of a dataset, or of file patterns, for pons predict.
 */
#ifndef CORE_CLI_PREDICT_PREDICT_DATASET_H
#define CORE_CLI_PREDICT_PREDICT_DATASET_H

#include "base/file/file_kind.h"
#include "data/dataset/dataset.h"

typedef enum predict_split {
    PREDICT_SPLIT_AUTO = 0, PREDICT_SPLIT_TEST, PREDICT_SPLIT_ALL
} predict_split;

typedef struct predict_dataset_needs {
    dataset_target target;     /* that the layout provides                                        */
    predict_split split;
    bool channels_optional;    /* as of dataset_settings: NULL stands for an absent file          */
    const slide_settings *slides; /* how a list of patches is read; NULL: none is expected        */
} predict_dataset_needs;

/* Whether an argument names a dataset: a list, a folder without files for 'use', or patterns. */
bool predict_dataset_is(const char *argument, file_use use);
/*
 * Open a dataset without its labels. PREDICT_SPLIT_AUTO takes the cases that the dataset keeps for
 * tests, or all cases if it keeps none. A case that lacks a file which it needs is PONS_DATA. The
 * caller closes *out.
 */
pons_status predict_dataset_open(const char *argument, const predict_dataset_needs *needs,
                                 dataset **out, pons_error *err);

#endif
