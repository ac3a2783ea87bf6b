/*
 * dataset_maker.h - small datasets in the test's own folder.
 */
#ifndef TESTS_DATASET_MAKER_H
#define TESTS_DATASET_MAKER_H

#include "base/file/file.h"
#include "data/cache/cache.h"
#include "data/dataset/dataset.h"
#include "data/nifti/nifti_write.h"
#include "data/volume/volume.h"
#include "support/root.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path in the folder. The last 64 results stay valid. */
const char *maker_path(const char *format, ...);

void maker_text(const char *name, const char *text);

typedef double maker_value(int64_t i, int64_t j, int64_t k);

/*
 * A volume of n0 x n1 x n2 voxels of 1 x 1 x 2 mm. Its origin is shifted by 'shift' mm along the
 * first axis.
 */
void maker_volume(const char *name, int64_t n0, int64_t n1, int64_t n2,
                  maker_value *value, double shift, int datatype);

/* Open a dataset without an error. */
dataset *maker_open(const dataset_settings *settings);

/* Opening ends with 'status' and one line, with or without a hint, which has the phrase. */
void maker_refused(const dataset_settings *settings, pons_status status, const char *phrase);

/* The number of cases that a cache holds. */
int maker_cases_held(const cache *c);

#endif
