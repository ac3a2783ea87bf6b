/*
 * split.h - which cases are held out for validation.
 */
#ifndef CORE_DATA_DATASET_SPLIT_H
#define CORE_DATA_DATASET_SPLIT_H

#include "data/dataset/dataset.h"

/*
 * Mark the held-out cases of a sorted manifest: held[rank] = true. 'rule' is a value of
 * data.validation.
 */
pons_status split_mark(const char *rule, uint64_t seed, int case_count, const data_case *cases,
                       bool *held, pons_error *err);

#endif
