/*
 * filled_mask.h - the voxels of an image that are not 0, with their holes filled, as in nnU-Net.
 */
#ifndef CORE_DATA_VOLUME_FILLED_MASK_H
#define CORE_DATA_VOLUME_FILLED_MASK_H

#include <pons/transform.h>

/*
 * Set *out to a mask [extent[0]][extent[1]][extent[2]] of 0 and 1, which the caller frees. A voxel
 * is in the mask if a channel of the F32 image 'v' is not 0, or if no path of zeros through faces
 * of voxels leads from it to the border. PONS_DEVICE: out of memory.
 */
pons_status filled_mask_make(const pons_volume *v, uint8_t **out, pons_error *err);

#endif
