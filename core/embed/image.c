/*
 * image.c - convert voxels of any type and order to F32, and check them.
 */
#include "embed/image.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/finite.h"
#include "base/thread/parallel.h"
#include "data/volume/geometry.h"

/* Convert 'count' values that lie 'stride' bytes apart to floats that lie 'step' floats apart. */
typedef void convert_values(const char *from, int64_t stride, int64_t count, float *to,
                            int64_t step);

#define CONVERT(NAME, TYPE)                                                                       \
    static void convert_##NAME(const char *from, int64_t stride, int64_t count, float *to,        \
                               int64_t step)                                                      \
    {                                                                                             \
        for (int64_t n = 0; n < count; n++) {                                                     \
            TYPE x;                                                                               \
            memcpy(&x, from + n * stride, sizeof x);                                              \
            to[n * step] = (float)x;                                                              \
        }                                                                                         \
    }

CONVERT(u8, uint8_t)
CONVERT(i8, int8_t)
CONVERT(u16, uint16_t)
CONVERT(i16, int16_t)
CONVERT(u32, uint32_t)
CONVERT(i32, int32_t)
CONVERT(f32, float)
CONVERT(f64, double)

typedef struct voxel_type {
    int64_t size;
    convert_values *convert;
} voxel_type;

static const voxel_type types[] = {
    [PONS_VOXEL_U8] = { 1, convert_u8 }, [PONS_VOXEL_I8] = { 1, convert_i8 },
    [PONS_VOXEL_U16] = { 2, convert_u16 }, [PONS_VOXEL_I16] = { 2, convert_i16 },
    [PONS_VOXEL_U32] = { 4, convert_u32 }, [PONS_VOXEL_I32] = { 4, convert_i32 },
    [PONS_VOXEL_F32] = { 4, convert_f32 }, [PONS_VOXEL_F64] = { 8, convert_f64 }
};

enum { TYPE_COUNT = sizeof types / sizeof *types };

typedef struct conversion {
    const pons_image *from;
    convert_values *convert;
    int64_t stride[4];
    volume *to;
    _Atomic int64_t bad;      /* index of a value that is not finite; -1: none                    */
} conversion;

/* Rows first .. end - 1 along k. */
static void convert_rows(void *context, int64_t first, int64_t end)
{
    conversion *c = context;
    int64_t columns = c->to->extent[1], count = c->to->extent[2];
    int64_t size = count * c->to->channels;

    for (int64_t row = first; row < end; row++) {
        const char *from = (const char *)c->from->voxels + row / columns * c->stride[0]
                         + row % columns * c->stride[1];
        float *to = (float *)c->to->voxels + row * size;

        for (int channel = 0; channel < c->to->channels; channel++)
            c->convert(from + channel * c->stride[3], c->stride[2], count, to + channel,
                       c->to->channels);
        for (int64_t i = 0; !floats_are_finite(to, size) && i < size && c->bad < 0; i++)
            if (!isfinite(to[i]))
                c->bad = row * size + i;
    }
}

static void find_strides(const pons_image *from, int64_t size, int64_t stride[4])
{
    bool given = false;

    memcpy(stride, from->stride, sizeof from->stride);
    for (int a = 0; a < 4; a++)
        given = given || stride[a] != 0;
    if (given)
        return;
    stride[3] = size;
    stride[2] = stride[3] * from->channels;
    stride[1] = stride[2] * from->extent[2];
    stride[0] = stride[1] * from->extent[1];
}

static pons_status refuse_value(const conversion *c, const char *name, pons_error *err)
{
    int64_t at = c->bad, voxel = at / c->to->channels, row = voxel / c->to->extent[2];

    return pons_fail(err, PONS_DATA, "case '%s': voxel %lld %lld %lld is %g, expected a finite "
                     "number", name, (long long)(row / c->to->extent[1]),
                     (long long)(row % c->to->extent[1]), (long long)(voxel % c->to->extent[2]),
                     ((const float *)c->to->voxels)[at]);
}

static pons_status check_image(const pons_image *from, const char *name, pons_error *err)
{
    const int64_t *e = from->extent;
    double inverse[3][4];

    if (from->voxels == NULL)
        return pons_fail(err, PONS_DATA, "case '%s' has no voxels", name);
    if ((int)from->type < PONS_VOXEL_U8 || (int)from->type >= TYPE_COUNT)
        return pons_fail(err, PONS_DATA, "case '%s': voxels have type %d, expected one of "
                         "pons_voxel_type", name, (int)from->type);
    if (from->channels < 1 || e[0] < 1 || e[1] < 1 || e[2] < 1)
        return pons_fail(err, PONS_DATA, "case '%s' has %lld x %lld x %lld voxels of %d channels, "
                         "expected at least one of each", name, (long long)e[0], (long long)e[1],
                         (long long)e[2], from->channels);
    for (int n = 0; n < 12; n++)
        if (!isfinite(from->affine[n / 4][n % 4]))
            return pons_fail(err, PONS_DATA, "case '%s': the affine has a number that is not "
                             "finite", name);
    if (!pons_affine_invert(from->affine, inverse))
        return pons_fail(err, PONS_DATA, "case '%s': the affine has no inverse", name);
    return PONS_OK;
}

pons_status image_read(const pons_image *from, const char *name, volume *out, volume_grid *grid,
                       pons_error *err)
{
    volume fresh;
    conversion c = { .from = from, .to = &fresh, .bad = -1 };

    if (check_image(from, name, err) != PONS_OK
        || pons_volume_init(&fresh, PONS_F32, from->channels, from->extent, err) != PONS_OK)
        return err->status;
    c.convert = types[from->type].convert;
    find_strides(from, types[from->type].size, c.stride);
    memcpy(fresh.affine, from->affine, sizeof fresh.affine);
    parallel_run(fresh.extent[0] * fresh.extent[1],
                 parallel_piece(fresh.extent[2] * fresh.channels), convert_rows, &c);
    if (c.bad >= 0) {
        refuse_value(&c, name, err);
        pons_volume_clear(&fresh);
        return err->status;
    }
    volume_grid_of(&fresh, grid);
    *out = fresh;
    return PONS_OK;
}
