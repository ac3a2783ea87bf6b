/*
 * axis_resize.c - resize volumes axis by axis.
 *
 * Lines along the axis are read in blocks of LANES neighbours. Loops over a block's lanes are
 * innermost and become vectors, also those of the recursive spline filter.
 */
#include "data/volume/axis_resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/volume/axis_cover.h"

enum { LANES = 16, BLOCKS = 64, SPLINE_PADDING = 12 };

/* The source voxels of each voxel of the result, and their weights. */
typedef struct taps {
    int width;                /* weights of a voxel of the result                                 */
    int64_t *first;           /* [count] source voxel of the first weight                         */
    double *weight;           /* [count][width]                                                   */
} taps;

int64_t axis_nearest(axis_mode mode, int64_t i, int64_t old, int64_t count)
{
    double ratio = (double)old / (double)count;
    double at = floor(((double)i + (mode == AXIS_NEAREST ? 0 : 0.5)) * ratio);

    return at >= (double)old ? old - 1 : (int64_t)at;
}

/* ---- weights --------------------------------------------------------------------------------- */

static int taps_width(axis_mode mode, int64_t old, int64_t count)
{
    switch (mode) {
    case AXIS_LINEAR: return 2;
    case AXIS_CUBIC: return 4;
    case AXIS_AREA: return (int)((old + count - 1) / count) + 1;
    case AXIS_ANTIALIAS: return 2 * (int)((old + count - 1) / count) + 1;
    default: return 1;
    }
}

static int64_t clamp(int64_t i, int64_t last)
{
    return i < 0 ? 0 : i > last ? last : i;
}

/* Weights of voxels low and low + 1. At the ends of the axis both are the last voxel. */
static void linear_taps(double at, int64_t old, int64_t *first, double *weight)
{
    double low = floor(at), share = at - low;

    if (low < 0 || old == 1) {
        low = 0;
        share = 0;
    } else if (low >= (double)(old - 1)) {
        low = (double)(old - 2);
        share = 1;
    }
    *first = old == 1 ? 0 : (int64_t)low;
    weight[0] = 1 - share;
    weight[1] = share;
}

/* Weights of the four B-splines around 'at', counted from the first padded sample. */
static void cubic_taps(double at, int64_t *first, double *weight)
{
    double low = floor(at), y = at - low, z = 1 - y;

    weight[0] = z * z * z / 6;
    weight[1] = (y * y * (y - 2) * 3 + 4) / 6;
    weight[2] = (z * z * (z - 2) * 3 + 4) / 6;
    weight[3] = 1 - weight[0] - weight[1] - weight[2];
    *first = (int64_t)low - 1 + SPLINE_PADDING;
}

static void area_taps(int64_t i, int64_t old, int64_t count, int width, int64_t *first,
                      double *weight)
{
    int64_t begin = i * old / count, end = ((i + 1) * old + count - 1) / count;

    *first = clamp(begin, old - width < 0 ? 0 : old - width);
    for (int t = 0; t < width; t++) {
        int64_t voxel = *first + t;

        weight[t] = voxel >= begin && voxel < end ? 1.0 / (double)(end - begin) : 0;
    }
}

/* A triangle that reaches as far as 1 voxel of the coarser grid, and is cut at the ends. */
static void antialias_taps(int64_t i, int64_t old, int64_t count, int width, int64_t *first,
                           double *weight)
{
    double scale = (double)old / (double)count, reach = scale > 1 ? scale : 1, sum = 0;
    double centre = ((double)i + 0.5) * scale;
    int64_t begin = (int64_t)fmax(0, floor(centre - reach + 0.5));
    int64_t end = (int64_t)fmin((double)old, floor(centre + reach + 0.5));

    *first = clamp(begin, old - width < 0 ? 0 : old - width);
    for (int t = 0; t < width; t++) {
        int64_t voxel = *first + t;
        double share = 1 - fabs(((double)voxel + 0.5 - centre) / reach);

        weight[t] = voxel >= begin && voxel < end && share > 0 ? share : 0;
        sum += weight[t];
    }
    for (int t = 0; t < width; t++)
        weight[t] /= sum;
}

static bool taps_init(taps *t, axis_mode mode, int64_t old, int64_t count)
{
    t->width = taps_width(mode, old, count);
    if (t->width > old && (mode == AXIS_AREA || mode == AXIS_ANTIALIAS))
        t->width = (int)old;
    t->first = malloc((size_t)count * sizeof *t->first);
    t->weight = malloc((size_t)count * (size_t)t->width * sizeof *t->weight);
    if (!t->first || !t->weight)
        return false;
    for (int64_t i = 0; i < count; i++) {
        double at = ((double)i + 0.5) * ((double)old / (double)count) - 0.5;
        double *weight = t->weight + i * t->width;

        if (mode == AXIS_LINEAR)
            linear_taps(at, old, &t->first[i], weight);
        else if (mode == AXIS_CUBIC)
            cubic_taps(at, &t->first[i], weight);
        else if (mode == AXIS_AREA)
            area_taps(i, old, count, t->width, &t->first[i], weight);
        else if (mode == AXIS_ANTIALIAS)
            antialias_taps(i, old, count, t->width, &t->first[i], weight);
        else {
            t->first[i] = axis_nearest(mode, i, old, count);
            weight[0] = 1;
        }
    }
    return true;
}

static void taps_clear(taps *t)
{
    free(t->first);
    free(t->weight);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* One axis of a volume that is resized. A line is the voxels along it, 'inner' floats apart. */
typedef struct resizing {
    const float *from;
    float *to;
    int64_t old, count, inner, lines;
    taps taps;
    bool spline;
    _Atomic bool failed;
} resizing;

/*
 * Coefficients of the cubic B-spline through n samples: a causal and an anti-causal recursion with
 * the pole sqrt(3) - 2 (Unser 1999). Samples beyond the ends are mirrored at their edges.
 */
static void spline_filter(double (*x)[LANES], int64_t n)
{
    const double pole = sqrt(3) - 2, gain = (1 - pole) * (1 - 1 / pole);
    double sum[LANES] = { 0 }, power = 1;

    for (int64_t i = 0; i < n; i++)
        for (int l = 0; l < LANES; l++)
            x[i][l] *= gain;
    for (int64_t i = 0; i < n && fabs(power) > 1e-18; i++, power *= pole)
        for (int l = 0; l < LANES; l++)
            sum[l] += power * x[i][l];
    for (int l = 0; l < LANES; l++)
        x[0][l] += pole * sum[l];
    for (int64_t i = 1; i < n; i++)
        for (int l = 0; l < LANES; l++)
            x[i][l] += pole * x[i - 1][l];
    for (int l = 0; l < LANES; l++)
        x[n - 1][l] *= pole / (pole - 1);
    for (int64_t i = n - 2; i >= 0; i--)
        for (int l = 0; l < LANES; l++)
            x[i][l] = pole * (x[i + 1][l] - x[i][l]);
}

/* LANES lines from 'first' on. */
typedef struct line_block {
    int lanes;                /* lines that there are; behind the last one it is repeated         */
    bool together;            /* their voxels lie one behind the other                            */
    int64_t start[LANES];     /* float at which each line begins                                  */
} line_block;

/* 'length': voxels of a line. */
static void block_init(line_block *b, const resizing *r, int64_t first, int64_t length)
{
    b->lanes = r->lines - first < LANES ? (int)(r->lines - first) : LANES;
    b->together = b->lanes == LANES && first % r->inner + LANES <= r->inner;
    for (int l = 0; l < LANES; l++) {
        int64_t line = first + l < r->lines ? first + l : r->lines - 1;

        b->start[l] = line / r->inner * length * r->inner + line % r->inner;
    }
}

static void read_lines(const resizing *r, const line_block *b, double (*x)[LANES])
{
    const float *first = r->from + b->start[0];

    for (int64_t i = 0; i < r->old; i++) {
        int64_t at = i * r->inner;

        if (b->together)
            for (int l = 0; l < LANES; l++)
                x[i][l] = first[at + l];
        else
            for (int l = 0; l < LANES; l++)
                x[i][l] = r->from[b->start[l] + at];
    }
}

/* Repeat the first and the last sample in front of and behind the line. */
static void pad_lines(double (*x)[LANES], int64_t old)
{
    for (int i = 0; i < SPLINE_PADDING; i++) {
        memcpy(x[i], x[SPLINE_PADDING], sizeof x[0]);
        memcpy(x[SPLINE_PADDING + old + i], x[SPLINE_PADDING + old - 1], sizeof x[0]);
    }
}

static void write_lines(const resizing *r, double (*x)[LANES], const line_block *b)
{
    for (int64_t i = 0; i < r->count; i++) {
        const double *weight = r->taps.weight + i * r->taps.width;
        double (*source)[LANES] = x + r->taps.first[i];
        double sum[LANES] = { 0 };
        int64_t at = i * r->inner;

        for (int t = 0; t < r->taps.width; t++)
            for (int l = 0; l < LANES; l++)
                sum[l] += weight[t] * source[t][l];
        if (b->together)
            for (int l = 0; l < LANES; l++)
                r->to[b->start[0] + at + l] = (float)sum[l];
        else
            for (int l = 0; l < b->lanes; l++)
                r->to[b->start[l] + at] = (float)sum[l];
    }
}

static void resize_lines(void *context, int64_t begin, int64_t end)
{
    resizing *r = context;
    int64_t padding = r->spline ? SPLINE_PADDING : 0;
    double (*x)[LANES] = malloc((size_t)(r->old + 2 * padding + 1) * sizeof *x);

    if (!x) {
        r->failed = true;
        return;
    }
    memset(x[r->old + 2 * padding], 0, sizeof *x);
    for (int64_t first = begin * LANES; first < r->lines && first < end * LANES; first += LANES) {
        line_block block;

        block_init(&block, r, first, r->old);
        read_lines(r, &block, x + padding);
        if (r->spline) {
            pad_lines(x, r->old);
            spline_filter(x, r->old + 2 * padding);
        }
        block_init(&block, r, first, r->count);
        write_lines(r, x, &block);
    }
    free(x);
}

float *axis_resize(const float *voxels, const int64_t extent[3], int channels, int axis,
                   int64_t count, axis_mode mode)
{
    resizing r = { .from = voxels, .old = extent[axis], .count = count, .inner = channels,
                   .lines = channels, .spline = mode == AXIS_CUBIC };

    for (int a = 0; a < 3; a++) {
        r.inner *= a > axis ? extent[a] : 1;
        r.lines *= a != axis ? extent[a] : 1;
    }
    r.to = malloc((size_t)r.lines * (size_t)count * sizeof *r.to);
    r.failed = !taps_init(&r.taps, mode, r.old, count) || !r.to;
    if (!r.failed)
        pons_parallel_for((r.lines + LANES - 1) / LANES, BLOCKS, resize_lines, &r);
    taps_clear(&r.taps);
    if (!r.failed)
        return r.to;
    free(r.to);
    return NULL;
}

/* ---- volumes --------------------------------------------------------------------------------- */

void resize_position(pons_volume *v, const int64_t extent[3])
{
    for (int a = 0; a < 3; a++) {
        double ratio = (double)v->extent[a] / (double)extent[a];
        int64_t begin = v->inside_start[a], end = begin + v->inside_extent[a];
        double edge[2] = { (double)begin / ratio - 0.5, (double)end / ratio - 0.5 };
        double centre[2] = { edge[0] + 0.5 / ratio, edge[1] - 0.5 / ratio };

        for (int r = 0; r < 3; r++) {
            v->affine[r][3] += v->affine[r][a] * (ratio / 2 - 0.5);
            v->affine[r][a] *= ratio;
        }
        if (begin == end)
            v->inside_start[a] = 0;
        else if (begin == 0 && end == v->extent[a])
            v->inside_extent[a] = extent[a];
        else
            axis_cover(edge, centre, extent[a], &v->inside_start[a], &v->inside_extent[a]);
        v->extent[a] = extent[a];
    }
}

pons_status image_resize(pons_volume *v, const int64_t extent[3], const axis_mode mode[3],
                         pons_error *err)
{
    int64_t current[3];
    float *voxels = v->voxels;

    memcpy(current, v->extent, sizeof current);
    for (int a = 0; a < 3; a++) {
        float *next;

        if (current[a] == extent[a])
            continue;
        next = axis_resize(voxels, current, v->channels, a, extent[a], mode[a]);
        if (voxels != v->voxels)
            free(voxels);
        if (!next)
            return pons_fail(err, PONS_DEVICE, "out of memory: the image is resized to %lld x "
                             "%lld x %lld voxels", (long long)extent[0], (long long)extent[1],
                             (long long)extent[2]);
        voxels = next;
        current[a] = extent[a];
    }
    if (voxels != v->voxels)
        free(v->voxels);
    v->voxels = voxels;
    resize_position(v, extent);
    return PONS_OK;
}

typedef struct label_resizing {
    const pons_volume *from;
    pons_volume *to;
    axis_mode mode;
    const int64_t *at;        /* [W] offsets of source voxels in a row                            */
} label_resizing;

static void resize_label_planes(void *context, int64_t first, int64_t end)
{
    const label_resizing *r = context;
    const pons_volume *v = r->from, *out = r->to;
    int channels = v->channels;
    uint8_t *to = (uint8_t *)out->voxels + first * out->extent[1] * out->extent[2] * channels;

    for (int64_t i = first; i < end; i++)
        for (int64_t j = 0; j < out->extent[1]; j++) {
            int64_t row = axis_nearest(r->mode, i, v->extent[0], out->extent[0]) * v->extent[1] +
                          axis_nearest(r->mode, j, v->extent[1], out->extent[1]);
            const uint8_t *from = (const uint8_t *)v->voxels + row * v->extent[2] * channels;

            for (int64_t k = 0; k < out->extent[2]; k++)
                for (int c = 0; c < channels; c++)
                    *to++ = from[r->at[k] + c];
        }
}

pons_status label_resize(pons_volume *v, const int64_t extent[3], axis_mode mode, pons_error *err)
{
    int64_t *at = malloc((size_t)extent[2] * sizeof *at);
    pons_volume out = { .voxels = NULL };
    label_resizing r = { .from = v, .to = &out, .mode = mode, .at = at };

    if (!at)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (pons_volume_init(&out, v->type, v->channels, extent, err) != PONS_OK) {
        free(at);
        return err->status;
    }
    for (int64_t k = 0; k < extent[2]; k++)
        at[k] = axis_nearest(mode, k, v->extent[2], extent[2]) * v->channels;
    pons_parallel_for(extent[0], 1 + (1 << 16) / (extent[1] * extent[2] + 1), resize_label_planes,
                      &r);
    free(at);
    free(v->voxels);
    v->voxels = out.voxels;
    resize_position(v, extent);
    return PONS_OK;
}
