/*
 * volume_resample - sample a volume on another grid.
 *
 * Where the grids share their axes, which is nearly always, positions along an axis depend on that
 * axis alone: an image is interpolated plane by plane, then row by row, then along the row, so that
 * each voxel is read in order. Any other pair of grids goes voxel by voxel.
 */
#include "data/place.h"
#include "data/volume.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- same axes ------------------------------------------------------------------------------- */

/*
 * An oblique file's axes are parallel up to its float32. Interpolation does not see that, but a
 * label at half a voxel does, so labels want exact zeros.
 */
static bool is_diagonal(const double m[3][4], double tolerance)
{
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            if (r != c && fabs(m[r][c]) > tolerance)
                return false;
    return true;
}

static void blend(const float *a, const float *b, float weight, int64_t count,
                  float *restrict out)
{
    if (weight == 0 || a == b) {
        memcpy(out, a, (size_t)count * sizeof *out);
        return;
    }
    for (int64_t n = 0; n < count; n++)
        out[n] = a[n] + weight * (b[n] - a[n]);
}

/* Along a row of voxels of several channels. */
static void row_interpolate(const float *row, const place *k, int64_t count, int channels,
                            float *out)
{
    if (channels == 1) {
        for (int64_t n = 0; n < count; n++) {
            const float *a = row + k[n].low;
            float w = (float)k[n].weight;

            out[n] = w == 0 ? a[0] : a[0] + w * (a[1] - a[0]);
        }
        return;
    }
    for (int64_t n = 0; n < count; n++) {
        const float *a = row + k[n].low * channels;
        float w = (float)k[n].weight;

        for (int c = 0; c < channels; c++)
            out[n * channels + c] = w == 0 ? a[c] : a[c] + w * (a[c + channels] - a[c]);
    }
}

static const float *plane_of(const volume *v, int64_t i)
{
    return (const float *)v->voxels + i * v->extent[1] * v->extent[2] * v->channels;
}

static pons_status linear_same_axes(const volume *v, place *const at[3], volume *out,
                                    pons_error *err)
{
    int64_t width = v->extent[2] * v->channels, plane = v->extent[1] * width;
    int64_t out_width = out->extent[2] * out->channels;
    float *middle = malloc((size_t)plane * sizeof *middle);
    float *row = malloc((size_t)width * sizeof *row);

    if (!middle || !row) {
        free(middle);
        free(row);
        return pons_fail(err, PONS_DEVICE, "out of memory: resampling needs %lld bytes",
                         (long long)((plane + width) * (int64_t)sizeof *row));
    }
    for (int64_t i = 0; i < out->extent[0]; i++) {
        const place *pi = &at[0][i];
        const float *a = plane_of(v, pi->low), *b = pi->weight > 0 ? a + plane : a;
        float *to = (float *)out->voxels + i * out->extent[1] * out_width;

        blend(a, b, (float)pi->weight, plane, middle);
        for (int64_t j = 0; j < out->extent[1]; j++, to += out_width) {
            const place *pj = &at[1][j];
            const float *first = middle + pj->low * width;

            blend(first, pj->weight > 0 ? first + width : first, (float)pj->weight, width, row);
            row_interpolate(row, at[2], out->extent[2], out->channels, to);
        }
    }
    free(middle);
    free(row);
    return PONS_OK;
}

static void nearest_same_axes(const volume *v, place *const at[3], volume *out)
{
    size_t size = (v->type == PONS_U8 ? 1 : 4) * (size_t)v->channels;
    char *to = out->voxels;

    for (int64_t i = 0; i < out->extent[0]; i++)
        for (int64_t j = 0; j < out->extent[1]; j++) {
            const char *row = (const char *)v->voxels +
                              (size_t)((at[0][i].near * v->extent[1] + at[1][j].near) *
                                       v->extent[2]) * size;

            if (size == 1)
                for (int64_t k = 0; k < out->extent[2]; k++)
                    *to++ = row[at[2][k].near];
            else
                for (int64_t k = 0; k < out->extent[2]; k++, to += size)
                    memcpy(to, row + (size_t)at[2][k].near * size, size);
        }
}

/* ---- any grid -------------------------------------------------------------------------------- */

static void sample_linear(const volume *v, const place at[3], float *out)
{
    int64_t step[3] = { v->extent[1] * v->extent[2] * v->channels, v->extent[2] * v->channels,
                        v->channels };
    place_corners corners;

    place_corners_make(at, step, &corners);
    place_sample(&corners, (const float *)v->voxels + at[0].low * step[0] + at[1].low * step[1] +
                 at[2].low * step[2], v->channels, out);
}

static void resample_any(const volume *v, const double m[3][4], volume *out)
{
    static const int64_t zero[3] = { 0, 0, 0 };
    size_t size = (v->type == PONS_U8 ? 1 : 4) * (size_t)v->channels;
    char *to = out->voxels;
    place at[3];

    for (int64_t i = 0; i < out->extent[0]; i++)
        for (int64_t j = 0; j < out->extent[1]; j++)
            for (int64_t k = 0; k < out->extent[2]; k++, to += size) {
                places_of(m, i, j, k, zero, v->extent, at);
                if (v->type == PONS_F32)
                    sample_linear(v, at, (float *)to);
                else
                    memcpy(to, (const char *)v->voxels +
                                   (size_t)((at[0].near * v->extent[1] + at[1].near) *
                                            v->extent[2] + at[2].near) * size, size);
            }
}

/* ---- the public call ------------------------------------------------------------------------- */

static pons_status resample_to(const volume *v, const double m[3][4], volume *out, pons_error *err)
{
    place *at[3] = { NULL, NULL, NULL };
    pons_status status = PONS_OK;

    if (!is_diagonal(m, v->type == PONS_F32 ? 1e-7 : 1e-13)) {
        resample_any(v, m, out);
        return PONS_OK;
    }
    for (int a = 0; a < 3; a++) {
        at[a] = places_make(m[a][a], m[a][3], out->extent[a], 0, v->extent[a]);
        if (!at[a])
            status = pons_fail(err, PONS_DEVICE, "out of memory: resampling needs %lld bytes",
                               (long long)(out->extent[a] * (int64_t)sizeof **at));
    }
    if (!status && v->type == PONS_F32)
        status = linear_same_axes(v, at, out, err);
    else if (!status)
        nearest_same_axes(v, at, out);
    for (int a = 0; a < 3; a++)
        free(at[a]);
    return status;
}

/* The inside box seen from the new grid, rounded to the voxels whose centres it reaches. */
static void inside_resampled(const volume *v, const double back[3][4], volume *out)
{
    double low[3], high[3];
    bool whole = true;

    for (int a = 0; a < 3; a++)
        whole = whole && v->inside_start[a] == 0 && v->inside_extent[a] == v->extent[a];
    if (whole)
        return;
    for (int a = 0; a < 3; a++) {
        low[a] = high[a] = back[a][3];
        for (int c = 0; c < 3; c++) {
            double first = back[a][c] * ((double)v->inside_start[c] - 0.5);
            double last = back[a][c] * ((double)(v->inside_start[c] + v->inside_extent[c]) - 0.5);

            low[a] += fmin(first, last);
            high[a] += fmax(first, last);
        }
        low[a] = fmax(0, ceil(low[a]));
        high[a] = fmin((double)out->extent[a] - 1, floor(high[a]));
        out->inside_start[a] = high[a] >= low[a] ? (int64_t)low[a] : 0;
        out->inside_extent[a] = high[a] >= low[a] ? (int64_t)(high[a] - low[a]) + 1 : 0;
    }
}

pons_status pons_volume_resample(pons_volume *v, const double affine[3][4],
                                 const int64_t extent[3], pons_error *err)
{
    double inverse[3][4], m[3][4], back[3][4];
    volume out;
    pons_status status;

    if (!pons_affine_invert((const double (*)[4])v->affine, inverse)
        || !pons_affine_invert(affine, back))
        return pons_fail(err, PONS_DATA, "a volume with a singular affine cannot be resampled");
    pons_affine_multiply((const double (*)[4])inverse, affine, m);
    status = pons_volume_init(&out, v->type, v->channels, extent, err);
    if (status)
        return status;
    memcpy(out.affine, affine, sizeof out.affine);
    status = resample_to(v, (const double (*)[4])m, &out, err);
    if (status) {
        pons_volume_clear(&out);
        return status;
    }
    pons_affine_multiply((const double (*)[4])back, (const double (*)[4])v->affine, m);
    inside_resampled(v, (const double (*)[4])m, &out);
    free(v->voxels);
    *v = out;
    return PONS_OK;
}
