/*
 * volume.c - memory of volumes: make, clear, copy, measure. geometry.c and nifti/ do the rest.
 */
#include "data/volume/volume.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/huge_pages.h"

static size_t type_size(pons_type type)
{
    return type == PONS_U8 ? 1 : 4;
}

int64_t pons_volume_count(const pons_volume *v)
{
    return v->extent[0] * v->extent[1] * v->extent[2];
}

size_t pons_volume_size(const pons_volume *v)
{
    return (size_t)pons_volume_count(v) * (size_t)v->channels * type_size(v->type);
}

/* The only axis with the largest spacing; -1: there are two. */
static int largest_axis(const double spacing[3])
{
    double largest = fmax(spacing[0], fmax(spacing[1], spacing[2]));
    int axis = -1, count = 0;

    for (int a = 0; a < 3; a++)
        if (spacing[a] == largest) {
            axis = a;
            count++;
        }
    return count == 1 ? axis : -1;
}

static bool is_anisotropic(const double s[3])
{
    return fmax(s[0], fmax(s[1], s[2])) / fmin(s[0], fmin(s[1], s[2])) > 3;
}

int pons_slice_axis(pons_slices slices, const double old[3], const double wanted[3])
{
    if (slices == PONS_SLICES_YES || (slices == PONS_SLICES_AUTO && is_anisotropic(old)))
        return largest_axis(old);
    return slices == PONS_SLICES_AUTO && is_anisotropic(wanted) ? largest_axis(wanted) : -1;
}

void pons_volume_spacing(const pons_volume *v, double spacing[3])
{
    for (int a = 0; a < 3; a++) {
        double x = v->affine[0][a], y = v->affine[1][a], z = v->affine[2][a];
        spacing[a] = sqrt(x * x + y * y + z * z);
    }
}

/* Bytes of a volume; false: the product overflows. */
static bool size_fits(pons_type type, int channels, const int64_t extent[3], size_t *size)
{
    size_t product = type_size(type) * (size_t)channels;

    for (int a = 0; a < 3; a++)
        if (extent[a] < 1 || __builtin_mul_overflow(product, (size_t)extent[a], &product))
            return false;
    *size = product;
    return product <= PTRDIFF_MAX;
}

pons_status pons_volume_init(pons_volume *v, pons_type type, int channels, const int64_t extent[3],
                             pons_error *err)
{
    volume fresh = { .type = type, .channels = channels };
    size_t size;

    if (channels < 1 || !size_fits(type, channels, extent, &size))
        return pons_fail(err, PONS_DATA,
                         "a volume cannot have %d channels of %lld x %lld x %lld voxels", channels,
                         (long long)extent[0], (long long)extent[1], (long long)extent[2]);
    fresh.voxels = huge_pages_alloc_zeroed(size);
    if (!fresh.voxels)
        return pons_fail(err, PONS_DEVICE, "out of memory: a volume of %lld x %lld x %lld voxels "
                         "needs %zu bytes", (long long)extent[0], (long long)extent[1],
                         (long long)extent[2], size);
    for (int a = 0; a < 3; a++) {
        fresh.extent[a] = fresh.inside_extent[a] = extent[a];
        fresh.affine[a][a] = 1;
    }
    *v = fresh;
    return PONS_OK;
}

void pons_volume_clear(pons_volume *v)
{
    free(v->voxels);
    memset(v, 0, sizeof *v);
}

pons_status volume_copy(const volume *v, volume *out, pons_error *err)
{
    volume fresh;
    pons_status status;

    if (!v->voxels) {
        *out = *v;
        return PONS_OK;
    }
    status = pons_volume_init(&fresh, v->type, v->channels, v->extent, err);
    if (status)
        return status;
    memcpy(fresh.voxels, v->voxels, pons_volume_size(v));
    volume_copy_position(&fresh, v);
    *out = fresh;
    return PONS_OK;
}

void volume_copy_position(volume *v, const volume *from)
{
    memcpy(v->affine, from->affine, sizeof v->affine);
    memcpy(v->inside_start, from->inside_start, sizeof v->inside_start);
    memcpy(v->inside_extent, from->inside_extent, sizeof v->inside_extent);
}

void volume_copy_channel(const volume *v, int channel, float *out)
{
    const float *from = v->voxels;
    int64_t count = pons_volume_count(v);

    for (int64_t i = 0; i < count; i++)
        out[i] = from[i * v->channels + channel];
}
