/*
 * sampler.h - choose the position of a patch in a case.
 */
#ifndef CORE_DATA_LOADER_SAMPLER_H
#define CORE_DATA_LOADER_SAMPLER_H

#include "data/loader/loader.h"

/* The settings of the sampler, and one sample: its number in the step and its random numbers. */
typedef struct sampler_input {
    const loader_settings *settings;
    int64_t number;
    pons_rng draws;
} sampler_input;

/*
 * Choose the first voxel of a box of 'extent', from which a patch is read. It is negative along
 * axes on which the case is smaller. PONS_DATA: the case has no voxel to centre the box on.
 */
pons_status sampler_choose(const packed_case *p, sampler_input *input, const int64_t extent[3],
                           int64_t start[3], pons_error *err);

#endif
