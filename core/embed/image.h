/*
 * image.h - an image in a program's memory as a volume.
 */
#ifndef CORE_EMBED_IMAGE_H
#define CORE_EMBED_IMAGE_H

#include <pons/predict.h>

#include "data/volume/volume.h"

/*
 * Convert to F32, as a NIfTI file of these voxels is read. PONS_DATA: extents, channels or type are
 * none, the affine has no inverse, or a value is not finite; 'name' is that of the case.
 */
pons_status image_read(const pons_image *from, const char *name, volume *out, volume_grid *grid,
                       pons_error *err);

#endif
