/*
 * spoil.h - volumes with one voxel that is no number, or too large a one.
 */
#ifndef TESTS_SPOIL_H
#define TESTS_SPOIL_H

#include "data/volume/volume.h"

#include "data/nifti/nifti_read.h"
#include "data/nifti/nifti_write.h"
#include "root.h"

static inline void spoil_voxel(const char *file, size_t voxel, float value)
{
    pons_error err = PONS_ERROR_INIT;
    volume_facts facts;
    volume v;

    memset(&v, 0, sizeof v);
    ck_assert_msg(volume_read_image(in_root(file), &v, &facts, &err) == PONS_OK, "%s", err.text);
    ((float *)v.voxels)[voxel] = value;
    ck_assert_msg(volume_write(in_root(file), &v, NULL, &err) == PONS_OK, "%s", err.text);
    pons_volume_clear(&v);
}

#endif
