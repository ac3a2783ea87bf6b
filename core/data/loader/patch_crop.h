/*
 * patch_crop.h - cut a box out of a packed case and resize it, for patches that are read from it.
 */
#ifndef CORE_DATA_LOADER_PATCH_CROP_H
#define CORE_DATA_LOADER_PATCH_CROP_H

#include "data/packed/packed_case.h"

/*
 * Cut the sample's crop and resize it to 'extent': the image linearly, with its antialias, and
 * labels to the nearest voxel. packed_case_clear ends 'out'. PONS_PLUGIN: the box is not in the
 * case.
 */
pons_status patch_crop(const packed_case *p, const pons_sample *sample, const int64_t extent[3],
                       packed_case *out, pons_error *err);

#endif
