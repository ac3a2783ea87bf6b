/*
 * sampler.h - where a patch lies in a case.
 */
#ifndef CORE_DATA_LOADER_SAMPLER_H
#define CORE_DATA_LOADER_SAMPLER_H

#include "data/loader/loader.h"

/* Settings of the sampler, and the random numbers of this sample. */
typedef struct patch_place {
    const loader_settings *settings;
    pons_rng draws;
} patch_place;

/*
 * Choose the first voxel of the box of 'extent' that a patch is read from; negative along axes on
 * which the case is smaller. Fails if the case has no voxel to centre the box on.
 */
pons_status patch_find(const packed_case *p, patch_place *place, const int64_t extent[3],
                       int64_t start[3], pons_error *err);

#endif
