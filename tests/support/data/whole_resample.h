/*
 * whole_resample.h - inverse resampling of a whole volume at once.
 */
#ifndef TESTS_WHOLE_RESAMPLE_H
#define TESTS_WHOLE_RESAMPLE_H

#include "data/volume/inverse_resample.h"

/* All planes of 'v' (F32); arguments as for inverse_resample_open and inverse_resample_start. */
pons_status whole_resample(const volume *v, const volume_grid *grid, inverse_resample_kind kind,
                           float first, volume *out, pons_error *err);

#endif
