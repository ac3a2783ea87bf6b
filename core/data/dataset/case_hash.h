/*
 * case_hash.h - what the files of a case hold, in a few bytes.
 */
#ifndef CORE_DATA_DATASET_CASE_HASH_H
#define CORE_DATA_DATASET_CASE_HASH_H

#include "base/hash/hash128.h"
#include "data/dataset/dataset.h"

/* Of every byte of its images and label, in order. PONS_DATA where a file cannot be read. */
pons_status case_source(const data_case *c, fingerprint *out, pons_error *err);

#endif
