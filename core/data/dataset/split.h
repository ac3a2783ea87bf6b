/*
 * split.h - choose the cases that are held out for validation.
 *
 * The file of 'validation = file:F' is a text file that names a validation case a line; all other
 * cases are for training. Or it is JSON, the splits_final.json of nnU-Net: a list of
 * {"train": [NAME, ...], "val": [NAME, ...]}, one per fold. A case that a fold does not name
 * belongs to neither part.
 */
#ifndef CORE_DATA_DATASET_SPLIT_H
#define CORE_DATA_DATASET_SPLIT_H

#include "data/dataset/dataset.h"

enum { NNUNET_FOLDS = 5 };

typedef enum split_part { SPLIT_TRAINING = 0, SPLIT_VALIDATION, SPLIT_NEITHER } split_part;

typedef struct split_rule {
    const char *validation;    /* a value of data.validation                                      */
    uint64_t seed;
    const int64_t *fold;       /* the fold of a file of folds or of nnU-Net's; NULL: 0            */
} split_rule;

/* Set part[rank] of each case of a sorted list. */
pons_status split_mark(const split_rule *rule, int case_count, const data_case *cases,
                       split_part *part, pons_error *err);

/* The rule 'file:F'. 'fold' NULL: the first. part[rank] is SPLIT_TRAINING before the call. */
pons_status split_file_mark(const char *path, const int64_t *fold, int case_count,
                            const data_case *cases, split_part *part, pons_error *err);

#endif
