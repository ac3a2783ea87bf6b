/*
 * convolution_trial.h - trials (kernel_trial.h) of one convolution in all directions and types.
 */
#ifndef TESTS_CONVOLUTION_TRIAL_H
#define TESTS_CONVOLUTION_TRIAL_H

#include "support/graph/kernel_trial.h"

extern const pons_type sample_types[];

/* A convolution with the tensors x, w and y. */
typedef struct sample {
    pons_convolution how;
    pons_tensor x, w, y;
} sample;

/*
 * 'channels' are those of x and y. The extent of x grows to the size that the kernel needs; the
 * extent of y follows.
 */
sample sample_make(const int64_t channels[2], const int64_t extent[3],
                   const int64_t kernel[3], pons_convolution how);

/*
 * A random convolution. Extents of D and H come from the first 'sizes' of six values, those of W
 * from all six. Each of several groups has a width of channels divided by 'share'.
 */
sample sample_draw(int sizes, int share);

/* Try all three directions in 32 and 16 bits; returns how many of the six were not declined. */
int directions_agree(sample s, trial_prepare make, bool library);

#endif
