/*
 * case_hash.h - a hash of the content of a case's files.
 */
#ifndef CORE_DATA_DATASET_CASE_HASH_H
#define CORE_DATA_DATASET_CASE_HASH_H

#include "base/hash/hash128.h"
#include "data/dataset/dataset.h"

/* The hash of all bytes of the images and the label, in order. PONS_DATA: a file is unreadable. */
pons_status case_source(const data_case *c, fingerprint *out, pons_error *err);

#endif
