/*
 * case_read.h - the files of a case as volumes.
 */
#ifndef CORE_DATA_DATASET_CASE_READ_H
#define CORE_DATA_DATASET_CASE_READ_H

#include "data/dataset/dataset.h"

#include <pons/transform.h>

/* The files of a case on their own grid, labels mapped to the target; no transform. */
pons_status case_read(const dataset *d, int rank, pons_case *out, pons_error *err);
void case_clear(pons_case *c);

#endif
