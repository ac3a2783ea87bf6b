/*
 * spoil.c - see spoil.h.
 */
#include "support/spoil.h"

void spoil_voxel(const char *file, size_t voxel, float value)
{
    pons_error err = PONS_ERROR_INIT;
    volume_facts facts;
    volume v;

    memset(&v, 0, sizeof v);
    ck_assert_msg(nifti_read_image(in_root(file), &v, &facts, &err) == PONS_OK, "%s", err.text);
    ((float *)v.voxels)[voxel] = value;
    ck_assert_msg(nifti_write(in_root(file), &v, NULL, &err) == PONS_OK, "%s", err.text);
    pons_volume_clear(&v);
}
