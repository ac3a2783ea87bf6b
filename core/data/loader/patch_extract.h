/*
 * patch_extract.h - the voxels of a patch.
 */
#ifndef CORE_DATA_LOADER_PATCH_EXTRACT_H
#define CORE_DATA_LOADER_PATCH_EXTRACT_H

#include "data/loader/loader.h"

/* Extent of the box that a sample's map reads, on the axes of the volume. */
void patch_box(const pons_sample *sample, int64_t extent[3]);

/*
 * Read planes first .. first + count - 1 along the first axis of the patch through the sample's
 * map, box at 'start', to their places in the whole patch's image and label (may be NULL). A signed
 * permutation moves voxels exactly; any other map is linear for the image, nearest for the label.
 * Outside of the case: zero or the nearest voxel; labels 0.
 */
void patch_cut(const packed_case *p, const pons_sample *sample, const int64_t start[3],
               loader_pad pad, int64_t first, int64_t count, float *image, uint8_t *label);

/*
 * The same for a device that cuts: for each place along the patch's three axes what a row of
 * PONS_KERNEL_PATCH says of it, for the image and for the label. False: the map interpolates.
 */
bool patch_places(const packed_case *p, const pons_sample *sample, const int64_t start[3],
                  loader_pad pad, int32_t *image, int32_t *label);

#endif
