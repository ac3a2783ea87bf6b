/*
 * case_source.h - what the files of a case hold, in a few bytes.
 */
#ifndef CORE_DATA_CASE_SOURCE_H
#define CORE_DATA_CASE_SOURCE_H

#include "base/fingerprint.h"
#include "data/dataset.h"

/* Of every byte of its images and label, in order. PONS_DATA where a file cannot be read. */
pons_status case_source(const data_case *c, fingerprint *out, pons_error *err);

#endif
