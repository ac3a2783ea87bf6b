/*
 * case_read.h - a case with its target, before any transform.
 */
#ifndef CORE_DATA_CASE_CASE_READ_H
#define CORE_DATA_CASE_CASE_READ_H

#include "data/dataset/dataset.h"

#include <pons/transform.h>

/* Read the files on their own grid. out->label holds the target (label_map.h), not label ids. */
pons_status case_read(const dataset *d, int rank, pons_case *out, pons_error *err);
void case_clear(pons_case *c);

#endif
