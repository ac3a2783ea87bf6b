/*
 * fuzz_nifti.c - arbitrary bytes as a NIfTI file. The reader refuses them with a line that names
 * the file, or returns finite voxels and an invertible grid.
 */
#include "fuzz/fuzz_file.h"

#include "data/nifti/nifti_read.h"
#include "data/volume/volume.h"

#include <math.h>

static void require_sound(const volume *v)
{
    double inverse[3][4];
    int64_t count = pons_volume_count(v) * v->channels;

    require(count > 0, "a volume has voxels");
    require(pons_affine_invert((const double (*)[4])v->affine, inverse),
            "an affine can be inverted");
    for (int64_t n = 0; v->type == PONS_F32 && n < count; n++)
        require(isfinite(((const float *)v->voxels)[n]), "voxels are finite numbers");
}

static void read_as(const char *path, pons_status (*read)(const char *, volume *, volume_facts *,
                                                          pons_error *))
{
    pons_error err = PONS_ERROR_INIT;
    volume v = { .voxels = NULL };
    volume_facts facts;
    pons_status status = read(path, &v, &facts, &err);

    if (status == PONS_OK) {
        require_sound(&v);
        pons_volume_clear(&v);
        return;
    }
    require(err.status == status && strstr(err.text, path), "a refusal names the file");
    require(v.voxels == NULL, "nothing is returned with a refusal");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool packed = size > 1 && data[0] == 0x1f && data[1] == 0x8b;
    char path[64];

    snprintf(path, sizeof path, "/tmp/pons-fuzz-%d.nii%s", (int)getpid(), packed ? ".gz" : "");
    fuzz_write(path, data, size);
    read_as(path, nifti_read_image);
    read_as(path, nifti_read_label);
    unlink(path);
    return 0;
}
