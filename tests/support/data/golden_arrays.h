/*
 * golden_arrays.h - golden values of transforms: arrays [C, D, H, W] of files in tests/golden.
 */
#ifndef TESTS_GOLDEN_ARRAYS_H
#define TESTS_GOLDEN_ARRAYS_H

#include "checkpoint/safetensors.h"
#include "config/config.h"
#include "support/must.h"
#include "support/suite.h"

/* The arrays of a file in tests/golden; the caller closes them. */
safetensors *open_arrays(const char *name);
const safetensor *find_array(const safetensors *arrays, const char *name);
/* The array [C, H, W] as [C, 1, H, W]. */
safetensor picture_of(const safetensors *arrays, const char *name);
/* A configuration of the given text. */
config *open_ini(const char *text);
/* The array [C, D, H, W] as [D, H, W, C]; malloc'ed. */
float *channels_last(const safetensor *t);
/* 'found' is [D, H, W, C]; it may be away by 'of_range' of the range of the expected values. */
void assert_near(const float *found, const safetensor *expected, double of_range,
                 const char *name);
/* The share of voxels with another label may be at most 'share'. */
void assert_labels(const uint8_t *found, const safetensor *expected, double share,
                   const char *name);

#endif
