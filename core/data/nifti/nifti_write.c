/*
 * nifti_write.c - write a volume: transpose to the file's order, make the header, compress if the
 * name ends in .gz.
 *
 * The file is complete or absent. Equal volumes give equal bytes.
 */
#include "data/nifti/nifti_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/file_kind.h"
#include "base/integer.h"
#include "base/text/text.h"
#include "base/thread/parallel.h"
#include "data/nifti/gzip.h"
#include "data/nifti/nifti_internal.h"
#include "data/volume/geometry.h"

enum { SIDE_I = 64, SIDE_K = 16 };

static double voxel_value(const volume *v, int64_t index)
{
    if (v->type == PONS_U8)
        return ((const uint8_t *)v->voxels)[index];
    if (v->type == PONS_I32)
        return ((const int32_t *)v->voxels)[index];
    return ((const float *)v->voxels)[index];
}

typedef struct volume_writing {
    const volume *v;
    const nifti_kind *kind;
    double slope;
    unsigned char *out;
} volume_writing;

/* Transpose plane j of a channel from [D, H, W, C] to the file's order, in tiles of i and k. */
static void transpose_plane(const volume_writing *w, int64_t channel, int64_t j)
{
    const volume *v = w->v;
    const int64_t *n = v->extent;
    double tile[SIDE_K][SIDE_I];

    for (int64_t i0 = 0; i0 < n[0]; i0 += SIDE_I)
        for (int64_t k0 = 0; k0 < n[2]; k0 += SIDE_K) {
            int64_t i_count = min_i64(SIDE_I, n[0] - i0), k_count = min_i64(SIDE_K, n[2] - k0);

            for (int64_t i = 0; i < i_count; i++)
                for (int64_t k = 0; k < k_count; k++)
                    tile[k][i] = voxel_value(v, (((i0 + i) * n[1] + j) * n[2] + k0 + k) *
                                                    v->channels + channel) / w->slope;
            for (int64_t k = 0; k < k_count; k++)
                w->kind->store(tile[k], i_count,
                               w->out + (((channel * n[2] + k0 + k) * n[1] + j) * n[0] + i0) *
                                            w->kind->size);
        }
}

/* Transpose planes first .. end - 1, numbered channel by channel. */
static void transpose_slab(void *context, int64_t first, int64_t end)
{
    const volume_writing *w = context;

    for (int64_t n = first; n < end; n++)
        transpose_plane(w, n / w->v->extent[1], n % w->v->extent[1]);
}

static int label_datatype(const volume *v)
{
    const int32_t *id = v->voxels;
    int64_t count = pons_volume_count(v) * v->channels;

    for (int64_t n = 0; n < count; n++)
        if (id[n] > 255)
            return 512;
    return 2;
}

static pons_status write_file(const char *path, const unsigned char *data, size_t size,
                              bool unsynced, pons_error *err)
{
    safe_file f;
    pons_status status = folder_make_for(path, err);

    if (!status)
        status = safe_file_open_swept(&f, path, err);
    if (status)
        return status;
    f.unsynced = unsynced;
    status = safe_file_write(&f, data, size, err);
    if (!status)
        return safe_file_commit(&f, err);
    safe_file_discard(&f);
    return status;
}

static pons_status write_kind(const char *path, const volume *v, const volume_grid *grid,
                              const nifti_values *values, bool unsynced, pons_error *err)
{
    const nifti_kind *kind = nifti_kind_find(values->datatype);
    unsigned char header[NIFTI_HEADER_LARGEST], *bytes, *packed;
    size_t begin = nifti_header_make(grid, v->channels, values, header), packed_size;
    size_t size = begin + (size_t)pons_volume_count(v) * (size_t)v->channels * (size_t)kind->size;
    pons_status status;

    bytes = malloc(size);
    if (!bytes)
        return pons_fail(err, PONS_DEVICE, "out of memory: '%s' needs %zu bytes", path, size);
    memcpy(bytes, header, begin);
    parallel_run(v->channels * v->extent[1], parallel_piece(v->extent[0] * v->extent[2]),
                 transpose_slab, &(volume_writing){ v, kind, values->slope, bytes + begin });
    if (!text_ends_with(path, ".gz")) {
        status = write_file(path, bytes, size, unsynced, err);
        free(bytes);
        return status;
    }
    status = gzip_deflate(bytes, size, &packed, &packed_size, err);
    free(bytes);
    if (status)
        return status;
    status = write_file(path, packed, packed_size, unsynced, err);
    free(packed);
    return status;
}

static pons_status write_checked(const char *path, const volume *v, const volume_grid *grid,
                                 const nifti_values *values, bool unsynced, pons_error *err)
{
    const nifti_kind *kind = nifti_kind_find(values->datatype);
    volume_grid own;

    if (file_kind_ending(path, FILE_VOLUME) == 0)
        return pons_fail(err, PONS_USAGE, "cannot write '%s': its name ends in neither '.nii' nor "
                         "'.nii.gz'", path);
    if (!kind || !kind->store)
        return pons_fail(err, PONS_FAILURE, "cannot write '%s' as %s", path,
                         nifti_kind_name(values->datatype));
    if (!grid) {
        volume_grid_of(v, &own);
        grid = &own;
    }
    if (memcmp(grid->extent, v->extent, sizeof v->extent))
        return pons_fail(err, PONS_FAILURE, "cannot write '%s': the volume is %lld x %lld x %lld, "
                         "expected the grid's %lld x %lld x %lld", path, (long long)v->extent[0],
                         (long long)v->extent[1], (long long)v->extent[2],
                         (long long)grid->extent[0], (long long)grid->extent[1],
                         (long long)grid->extent[2]);
    return write_kind(path, v, grid, values, unsynced, err);
}

pons_status nifti_write_values(const char *path, const volume *v, const volume_grid *grid,
                               const nifti_values *values, pons_error *err)
{
    return write_checked(path, v, grid, values, false, err);
}

pons_status nifti_write_as(const char *path, const volume *v, const volume_grid *grid,
                           int datatype, pons_error *err)
{
    return write_checked(path, v, grid, &(nifti_values){ datatype, 1 }, false, err);
}

pons_status nifti_write_unsynced(const char *path, const volume *v, int datatype, pons_error *err)
{
    return write_checked(path, v, NULL, &(nifti_values){ datatype, 1 }, true, err);
}

pons_status nifti_write(const char *path, const volume *v, const volume_grid *grid,
                        pons_error *err)
{
    int datatype = v->type == PONS_F32 ? 16 : v->type == PONS_U8 ? 2 : label_datatype(v);

    return nifti_write_as(path, v, grid, datatype, err);
}
