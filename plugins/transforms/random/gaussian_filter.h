/*
 * gaussian_filter.h - smooth one channel of a patch by a Gaussian along each axis.
 */
#ifndef PLUGINS_TRANSFORMS_RANDOM_GAUSSIAN_FILTER_H
#define PLUGINS_TRANSFORMS_RANDOM_GAUSSIAN_FILTER_H

#include <pons/transform.h>

/* Largest deviation in voxels, and the weights on each side that it needs. */
#define GAUSSIAN_SIGMA_MAX 16
enum { GAUSSIAN_TAIL_MAX = 64 };

/* Weights: MONAI's integrals over voxels, or nnU-Net's values at the voxels up to 3 deviations. */
typedef enum gaussian_approx { GAUSSIAN_ERF = 0, GAUSSIAN_SAMPLED } gaussian_approx;
/* Zeros outside of the patch, or its mirror image at the outermost voxel. */
typedef enum gaussian_border { GAUSSIAN_ZEROS = 0, GAUSSIAN_REFLECT } gaussian_border;

extern const char *const gaussian_approx_words[], *const gaussian_border_words[];

typedef struct gaussian_filter {
    double sigma[3];          /* voxels along i, j, k; 0: not smoothed                            */
    gaussian_approx approx;
    gaussian_border border;
    double truncated;         /* deviations at which the integrals end; 0: 4                      */
} gaussian_filter;

/*
 * Smooth a channel of the patch. 'to' has a voxel every 'to_step' floats; it may be the channel
 * itself, or the first half of the patch's scratch memory, which is overwritten in any case.
 */
void gaussian_filter_apply(const gaussian_filter *f, const pons_patch *patch, int channel,
                           float *to, int64_t to_step);

#endif
