/*
 * patch_extract.h - extract the voxels of a patch from a packed case.
 */
#ifndef CORE_DATA_LOADER_PATCH_EXTRACT_H
#define CORE_DATA_LOADER_PATCH_EXTRACT_H

#include "data/loader/loader.h"

/*
 * The extent of the box around a patch, in axes of the volume. A map by other than quarters reads
 * beyond it.
 */
void patch_extract_box(const pons_sample *sample, int64_t extent[3]);

/*
 * Extract planes first .. first + count - 1 along the patch's first axis, from the box at 'start',
 * through the sample's map. 'image' and 'label' (may be NULL) are the whole patch. Signed
 * permutations copy voxels exactly; other maps and displacements interpolate. Outside the case the
 * image is zero or the nearest voxel, and the label is 0 or TARGET_IGNORED.
 */
void patch_extract(const packed_case *p, const pons_sample *sample, const int64_t start[3],
                   loader_pad pad, int64_t first, int64_t count, float *image, uint8_t *label);

/* The label of a voxel beyond the case. */
uint8_t patch_extract_outside(loader_pad pad);

/*
 * The same for a device that extracts patches: offsets for each index of the three patch axes, as
 * in rows of PONS_KERNEL_PATCH. False: the map interpolates.
 */
bool patch_extract_offsets(const packed_case *p, const pons_sample *sample, const int64_t start[3],
                           loader_pad pad, int32_t *image, int32_t *label);

#endif
