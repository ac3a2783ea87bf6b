/*
 * volume_resample - sample a volume on another grid, and a prediction on the grid of its file.
 *
 * Where the grids share their axes, which is nearly always, positions along an axis depend on that
 * axis alone: an image is interpolated plane by plane, then row by row, then along the row, so that
 * each voxel is read in order. Any other pair of grids goes voxel by voxel.
 */
#include "data/volume.h"

#include "base/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A position along one axis: between 'low' and 'low + 1' at 'weight' (0: 'low + 1' may not exist),
 * or at 'near'. */
typedef struct place {
    int64_t low, near;
    double weight;
    bool outside;
} place;

/* Positions this close to a voxel's centre are the voxel: affines are rounded. */
static const double CENTRE = 1e-5;
/* Half a voxel, and the rounding of a grid whose extent was rounded. */
static const double REACH = 0.5 + 1e-3;

static place place_at(double position, int64_t begin, int64_t count)
{
    double nearest = rint(position), last = (double)(begin + count - 1);
    place p = { .outside = count < 1 || position < (double)begin - REACH ||
                           position > last + REACH };

    if (fabs(position - nearest) < CENTRE)
        position = nearest;
    position = fmin(fmax(position, (double)begin), fmax(last, (double)begin));
    p.near = (int64_t)rint(position);
    p.low = (int64_t)floor(position);
    p.weight = position - (double)p.low;
    return p;
}

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

static place *places_make(double step, double start, int64_t count, int64_t begin,
                          int64_t source_count)
{
    place *p = malloc((size_t)count * sizeof *p);

    for (int64_t n = 0; p && n < count; n++)
        p[n] = place_at(start + step * (double)n, begin, source_count);
    return p;
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

/* Between eight voxels; with a weight of 0 there may be no far one: the near one is read twice. */
static void sample_linear(const volume *v, const place at[3], float *out)
{
    int64_t step[3] = { v->extent[1] * v->extent[2] * v->channels, v->extent[2] * v->channels,
                        v->channels };
    const float *corner = (const float *)v->voxels + at[0].low * step[0] + at[1].low * step[1] +
                          at[2].low * step[2];
    int64_t offset[8];
    float weight[8];

    if (at[0].weight == 0 && at[1].weight == 0 && at[2].weight == 0) {
        memcpy(out, corner, (size_t)v->channels * sizeof *out);
        return;
    }
    for (int a = 0; a < 3; a++)
        step[a] = at[a].weight > 0 ? step[a] : 0;
    for (int n = 0; n < 8; n++) {
        float wi = (float)(n & 4 ? at[0].weight : 1 - at[0].weight);
        float wj = (float)(n & 2 ? at[1].weight : 1 - at[1].weight);
        float wk = (float)(n & 1 ? at[2].weight : 1 - at[2].weight);

        weight[n] = wi * wj * wk;
        offset[n] = (n & 4 ? step[0] : 0) + (n & 2 ? step[1] : 0) + (n & 1 ? step[2] : 0);
    }
    for (int c = 0; c < v->channels; c++) {
        float sum = 0;

        for (int n = 0; n < 8; n++)
            sum += weight[n] * corner[offset[n] + c];
        out[c] = sum;
    }
}

static void places_of(const double m[3][4], int64_t i, int64_t j, int64_t k,
                      const int64_t begin[3], const int64_t count[3], place out[3])
{
    for (int a = 0; a < 3; a++)
        out[a] = place_at(m[a][0] * (double)i + m[a][1] * (double)j + m[a][2] * (double)k +
                          m[a][3], begin[a], count[a]);
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

/* ---- the way back ---------------------------------------------------------------------------- */

/* The one axis of the other grid that a row of 'm' depends on, or -1. */
static int axis_of(const double row[4])
{
    int axis = -1;

    for (int c = 0; c < 3; c++)
        if (fabs(row[c]) > 1e-7) {
            if (axis >= 0)
                return -1;
            axis = c;
        }
    return axis;
}

/* Where each axis of the volume depends on one axis of the file: positions by index, in tables. */
typedef struct tables {
    place *at[3];
    int axis[3];
} tables;

static void tables_clear(tables *t)
{
    for (int a = 0; a < 3; a++)
        free(t->at[a]);
}

/* false: the grids are oblique to each other, or there is no memory for tables. */
static bool tables_make(const volume *v, const double m[3][4], int64_t start,
                        const int64_t extent[3], tables *t)
{
    bool done = true;

    *t = (tables){ .at = { NULL, NULL, NULL } };
    for (int a = 0; a < 3 && done; a++) {
        int axis = t->axis[a] = axis_of(m[a]);

        if (axis >= 0)
            t->at[a] = places_make(m[a][axis], m[a][3] + (axis == 0 ? m[a][0] * (double)start : 0),
                                   extent[axis], v->inside_start[a], v->inside_extent[a]);
        done = t->at[a] != NULL;
    }
    if (!done)
        tables_clear(t);
    return done;
}

static void sample_back(const volume *v, const place at[3], const float *fill, float *to)
{
    if (at[0].outside || at[1].outside || at[2].outside)
        memcpy(to, fill, (size_t)v->channels * sizeof *fill);
    else
        sample_linear(v, at, to);
}

/* What the planes of a way back have in common. */
typedef struct way_back {
    const volume *v;
    const tables *tables;     /* NULL: 'm' is applied to every voxel                              */
    const double (*m)[4];
    int64_t start;
    const float *fill;
    volume *out;
} way_back;

static void back_row_by_tables(const way_back *w, int64_t i, int64_t j, float *to)
{
    const tables *t = w->tables;
    int64_t n[3] = { i, j, 0 };
    place at[3];

    for (; n[2] < w->out->extent[2]; n[2]++, to += w->v->channels) {
        for (int a = 0; a < 3; a++)
            at[a] = t->at[a][n[t->axis[a]]];
        sample_back(w->v, at, w->fill, to);
    }
}

static void back_row_by_voxel(const way_back *w, int64_t i, int64_t j, float *to)
{
    place at[3];

    for (int64_t k = 0; k < w->out->extent[2]; k++, to += w->v->channels) {
        places_of(w->m, w->start + i, j, k, w->v->inside_start, w->v->inside_extent, at);
        sample_back(w->v, at, w->fill, to);
    }
}

static void back_planes(void *context, int64_t first, int64_t end)
{
    const way_back *w = context;
    const int64_t *extent = w->out->extent;
    int64_t width = extent[2] * w->v->channels;

    for (int64_t n = first * extent[1]; n < end * extent[1]; n++)
        (w->tables != NULL ? back_row_by_tables : back_row_by_voxel)(
            w, n / extent[1], n % extent[1], (float *)w->out->voxels + n * width);
}

pons_status volume_resample_back(const volume *v, const volume_grid *grid, int64_t start,
                                 int64_t count, const float *fill, volume *out, pons_error *err)
{
    int64_t extent[3] = { count, grid->extent[1], grid->extent[2] };
    double inverse[3][4], m[3][4];
    volume fresh;
    tables t;
    pons_status status;

    if (!pons_affine_invert((const double (*)[4])v->affine, inverse))
        return pons_fail(err, PONS_DATA, "a volume with a singular affine cannot be resampled");
    pons_affine_multiply((const double (*)[4])inverse, grid->affine, m);
    status = pons_volume_init(&fresh, PONS_F32, v->channels, extent, err);
    if (status)
        return status;
    memcpy(fresh.affine, grid->affine, sizeof fresh.affine);
    for (int r = 0; r < 3; r++)
        fresh.affine[r][3] += grid->affine[r][0] * (double)start;
    way_back w = { .v = v, .m = (const double (*)[4])m, .start = start, .fill = fill,
                   .out = &fresh };
    if (tables_make(v, w.m, start, extent, &t))
        w.tables = &t;
    parallel_run(count, 1, back_planes, &w);
    if (w.tables != NULL)
        tables_clear(&t);
    *out = fresh;
    return PONS_OK;
}

typedef struct decision {
    const volume *slab;
    uint8_t *out;
} decision;

static void decide_classes(void *context, int64_t first, int64_t end)
{
    const volume *slab = ((const decision *)context)->slab;
    uint8_t *out = ((const decision *)context)->out;
    const float *p = (const float *)slab->voxels + first * slab->channels;

    for (int64_t n = first; n < end; n++, p += slab->channels) {
        int best = 0;

        for (int c = 1; c < slab->channels; c++)
            if (p[c] > p[best])
                best = c;
        out[n] = (uint8_t)best;
    }
}

static void decide_regions(void *context, int64_t first, int64_t end)
{
    const volume *slab = ((const decision *)context)->slab;
    uint8_t *out = ((const decision *)context)->out;
    const float *p = slab->voxels;

    for (int64_t n = first * slab->channels; n < end * slab->channels; n++)
        out[n] = p[n] > 0.5f;
}

pons_status volume_decide_back(const volume *probabilities, const volume_grid *grid, bool regions,
                               volume *out, pons_error *err)
{
    int channels = regions ? probabilities->channels : 1;
    int64_t plane = grid->extent[1] * grid->extent[2] * channels, slab_count = 16;
    float *fill = calloc((size_t)probabilities->channels, sizeof *fill);
    volume fresh, slab;
    pons_status status;

    if (!fill)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    fill[0] = regions ? 0 : 1;
    status = pons_volume_init(&fresh, PONS_U8, channels, grid->extent, err);
    if (status) {
        free(fill);
        return status;
    }
    memcpy(fresh.affine, grid->affine, sizeof fresh.affine);
    for (int64_t i = 0; i < grid->extent[0] && !status; i += slab_count) {
        int64_t left = grid->extent[0] - i;
        decision d = { &slab, (uint8_t *)fresh.voxels + i * plane };

        status = volume_resample_back(probabilities, grid, i, left < slab_count ? left : slab_count,
                                      fill, &slab, err);
        if (status)
            break;
        parallel_run(pons_volume_count(&slab), 1 << 16, regions ? decide_regions : decide_classes,
                     &d);
        pons_volume_clear(&slab);
    }
    free(fill);
    if (status)
        pons_volume_clear(&fresh);
    else
        *out = fresh;
    return status;
}
