/*
 * resample.c - sample a volume on another grid.
 *
 * If axes of both grids are parallel, positions along an axis depend on that axis alone. An
 * image is then interpolated plane by plane, row by row and along the row, which reads voxels in
 * order. Other grids are sampled voxel by voxel.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/parallel.h"
#include "data/volume/axis_cover.h"
#include "data/volume/interpolation.h"
#include "data/volume/volume.h"

/* ---- same axes ------------------------------------------------------------------------------- */

/*
 * Axes of an oblique file are parallel up to float32 rounding. Interpolation tolerates that, but
 * nearest voxels at a distance of one half do not, so labels need exact zeros.
 */
static bool is_diagonal(const double m[3][4], double tolerance)
{
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            if (r != c && fabs(m[r][c]) > tolerance)
                return false;
    return true;
}

static void blend_rows(const float *a, const float *b, float weight, int64_t count,
                       float *restrict out)
{
    if (weight == 0 || a == b) {
        memcpy(out, a, (size_t)count * sizeof *out);
        return;
    }
    for (int64_t n = 0; n < count; n++)
        out[n] = a[n] + weight * (b[n] - a[n]);
}

/* Interpolate along a row of voxels with several channels. */
static void row_interpolate(const float *row, const axis_position *k, int64_t count, int channels,
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

/* The context of the parallel loops over planes of the result. */
typedef struct resampling {
    const volume *v;
    const double (*m)[4];     /* voxel of the result to voxel of 'v'                              */
    const axis_position *at[3];       /* positions by index along each axis, if axes are parallel */
    volume *out;
    _Atomic bool failed;      /* out of memory                                                    */
} resampling;

/* The two last rows interpolated between planes a and b; row j is cached in row[j & 1]. */
typedef struct middle_rows {
    const float *a, *b;
    float weight;
    int64_t width, cached[2];   /* floats of a row; index of each cached row, -1: none            */
    float *row[2];
} middle_rows;

static const float *middle_row(middle_rows *r, int64_t j)
{
    float *row = r->row[j & 1];

    if (r->cached[j & 1] != j)
        blend_rows(r->a + j * r->width, r->b + j * r->width, r->weight, r->width, row);
    r->cached[j & 1] = j;
    return row;
}

/* 'row' has space for one row of 'v'. */
static void linear_plane(const resampling *r, int64_t i, middle_rows *middle, float *row)
{
    const volume *v = r->v, *out = r->out;
    const axis_position *pi = &r->at[0][i];
    int64_t out_width = out->extent[2] * out->channels, plane = v->extent[1] * middle->width;
    float *to = (float *)out->voxels + i * out->extent[1] * out_width;

    middle->a = (const float *)v->voxels + pi->low * plane;
    middle->b = pi->weight > 0 ? middle->a + plane : middle->a;
    middle->weight = (float)pi->weight;
    middle->cached[0] = middle->cached[1] = -1;
    for (int64_t j = 0; j < out->extent[1]; j++, to += out_width) {
        const axis_position *pj = &r->at[1][j];
        const float *first = middle_row(middle, pj->low);
        const float *second = pj->weight > 0 ? middle_row(middle, pj->low + 1) : first;

        blend_rows(first, second, (float)pj->weight, middle->width, row);
        row_interpolate(row, r->at[2], out->extent[2], out->channels, to);
    }
}

static void linear_same_axes(void *context, int64_t first, int64_t end)
{
    resampling *r = context;
    int64_t width = r->v->extent[2] * r->v->channels;
    float *rows = malloc(3 * (size_t)width * sizeof *rows);
    middle_rows middle = { .width = width };

    if (!rows) {
        r->failed = true;
        return;
    }
    middle.row[0] = rows;
    middle.row[1] = rows + width;
    for (int64_t i = first; i < end; i++)
        linear_plane(r, i, &middle, rows + 2 * width);
    free(rows);
}

static void nearest_same_axes(void *context, int64_t first, int64_t end)
{
    const resampling *r = context;
    const volume *v = r->v, *out = r->out;
    const axis_position *const *at = r->at;
    size_t size = (v->type == PONS_U8 ? 1 : 4) * (size_t)v->channels;
    char *to = (char *)out->voxels + (size_t)(first * out->extent[1] * out->extent[2]) * size;

    for (int64_t i = first; i < end; i++)
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

/* ---- other grids ----------------------------------------------------------------------------- */

static void sample_linear(const volume *v, const axis_position at[3], float *out)
{
    int64_t step[3] = { v->extent[1] * v->extent[2] * v->channels, v->extent[2] * v->channels,
                        v->channels };
    interpolation_corners corners;

    interpolation_corners_make(at, step, &corners);
    interpolation_sample(&corners,
                         (const float *)v->voxels + at[0].low * step[0] + at[1].low * step[1] +
                         at[2].low * step[2], v->channels, out);
}

static void resample_any(void *context, int64_t first, int64_t end)
{
    static const int64_t zero[3] = { 0, 0, 0 };
    const resampling *r = context;
    const volume *v = r->v, *out = r->out;
    size_t size = (v->type == PONS_U8 ? 1 : 4) * (size_t)v->channels;
    char *to = (char *)out->voxels + (size_t)(first * out->extent[1] * out->extent[2]) * size;
    axis_position at[3];

    for (int64_t i = first; i < end; i++)
        for (int64_t j = 0; j < out->extent[1]; j++)
            for (int64_t k = 0; k < out->extent[2]; k++, to += size) {
                axis_positions_of(r->m, i, j, k, zero, v->extent, at);
                if (v->type == PONS_F32)
                    sample_linear(v, at, (float *)to);
                else
                    memcpy(to, (const char *)v->voxels +
                                   (size_t)((at[0].near * v->extent[1] + at[1].near) *
                                            v->extent[2] + at[2].near) * size, size);
            }
}

/* ---- resampling ------------------------------------------------------------------------------ */

static void resample_planes(resampling *r, void (*planes)(void *, int64_t, int64_t))
{
    const int64_t *extent = r->out->extent;

    parallel_run(extent[0], parallel_piece(extent[1] * extent[2]), planes, r);
}

static pons_status resample_to(const volume *v, const double m[3][4], volume *out, pons_error *err)
{
    resampling r = { .v = v, .m = m, .out = out };
    axis_position *at[3] = { NULL, NULL, NULL };

    if (!is_diagonal(m, v->type == PONS_F32 ? 1e-7 : 1e-13)) {
        resample_planes(&r, resample_any);
        return PONS_OK;
    }
    for (int a = 0; a < 3; a++) {
        r.at[a] = at[a] = axis_positions_make(m[a][a], m[a][3], out->extent[a], 0, v->extent[a]);
        r.failed = r.failed || !at[a];
    }
    if (!r.failed)
        resample_planes(&r, v->type == PONS_F32 ? linear_same_axes : nearest_same_axes);
    for (int a = 0; a < 3; a++)
        free(at[a]);
    return r.failed ? pons_fail(err, PONS_DEVICE, "out of memory: resampling needs tables and rows")
                    : PONS_OK;
}

/* The interval along axis 'a' of the new grid of a box of the old one, from 'first' to 'last'. */
static void map_interval(const double back[3][4], int a, const double first[3],
                         const double last[3], double out[2])
{
    out[0] = out[1] = back[a][3];
    for (int c = 0; c < 3; c++) {
        out[0] += fmin(back[a][c] * first[c], back[a][c] * last[c]);
        out[1] += fmax(back[a][c] * first[c], back[a][c] * last[c]);
    }
}

/* The whole stays the whole. */
static void inside_resampled(const volume *v, const double back[3][4], volume *out)
{
    double edges[2][3], centres[2][3], edge[2], centre[2];
    bool whole = true, empty = false;

    for (int a = 0; a < 3; a++) {
        centres[0][a] = (double)v->inside_start[a];
        centres[1][a] = (double)(v->inside_start[a] + v->inside_extent[a] - 1);
        edges[0][a] = centres[0][a] - 0.5;
        edges[1][a] = centres[1][a] + 0.5;
        whole = whole && v->inside_start[a] == 0 && v->inside_extent[a] == v->extent[a];
        empty = empty || v->inside_extent[a] == 0;
    }
    for (int a = 0; a < 3 && !whole; a++) {
        map_interval(back, a, edges[0], edges[1], edge);
        map_interval(back, a, centres[0], centres[1], centre);
        axis_cover(edge, centre, out->extent[a], &out->inside_start[a], &out->inside_extent[a]);
        if (empty)
            out->inside_start[a] = out->inside_extent[a] = 0;
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
