/*
 * spoil.h - volumes with one voxel that is NaN, infinite or too large.
 */
#ifndef TESTS_SPOIL_H
#define TESTS_SPOIL_H

#include "data/volume/volume.h"

#include "data/nifti/nifti_read.h"
#include "data/nifti/nifti_write.h"
#include "support/root.h"

void spoil_voxel(const char *file, size_t voxel, float value);

#endif
