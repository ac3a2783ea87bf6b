/*
 * patch_interpolate.h - sample the voxels of a patch between those of a packed case.
 */
#ifndef CORE_DATA_LOADER_PATCH_INTERPOLATE_H
#define CORE_DATA_LOADER_PATCH_INTERPOLATE_H

#include "data/loader/loader.h"

/*
 * patch_extract for any map and displacement. Image values are interpolated linearly. A label is
 * the nearest voxel's, or with 'linear_labels' that of the class with the largest linear weight:
 * what lies outside of the case counts as one class, and becomes 0. Equal weights: the nearest
 * voxel's class, else the smallest. Regions are ignored together: all channels where ignored voxels
 * have at least half of the weight, else each channel decides without them.
 */
void patch_interpolate(const packed_case *p, const pons_sample *sample, const int64_t start[3],
                       loader_pad pad, int64_t first, int64_t count, float *image, uint8_t *label);

#endif
