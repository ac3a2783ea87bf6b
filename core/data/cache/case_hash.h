/*
 * case_hash.h - the content hash of a case.
 */
#ifndef CORE_DATA_DATASET_CASE_HASH_H
#define CORE_DATA_DATASET_CASE_HASH_H

#include "base/hash/hash128.h"
#include "data/dataset/dataset.h"

/* The hash of all bytes of the images and the label, in order. PONS_DATA: a file is unreadable. */
pons_status case_hash(const data_case *c, hash128 *out, pons_error *err);

#endif
