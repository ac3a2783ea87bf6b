/*
 * gaussian_filter.c - smooth one channel of a patch by a Gaussian along each axis.
 *
 * The axes are filtered one after another, from the channel to the first half of the scratch
 * memory, to its second half and to the destination. Along i and j whole rows are added; along k a
 * row is copied in pieces with its neighbours, so that every loop runs over a row.
 */
#include "gaussian_filter.h"

#include <math.h>

enum { PIECE = 512, TAPS_MAX = 2 * GAUSSIAN_TAIL_MAX + 1 };

const char *const gaussian_approx_words[] = { "erf", "sampled", NULL };
const char *const gaussian_border_words[] = { "zeros", "reflect", NULL };

/* Weights of voxels -tail .. tail. */
typedef struct taps {
    int tail;
    float weight[TAPS_MAX];
} taps;

static int tail_of(const gaussian_filter *f, double sigma)
{
    double width = sigma * (f->truncated > 0 ? f->truncated : 4);
    double tail = f->approx == GAUSSIAN_SAMPLED ? floor(3 * sigma + 0.25)
                                                : floor(fmax(width, 0.5) + 0.5);

    return tail < GAUSSIAN_TAIL_MAX ? (int)tail : GAUSSIAN_TAIL_MAX;
}

static void taps_init(taps *t, const gaussian_filter *f, double sigma)
{
    bool sampled = f->approx == GAUSSIAN_SAMPLED;
    double weight[TAPS_MAX], sum = 0, scale = sqrt(0.5) / sigma;

    t->tail = tail_of(f, sigma);
    for (int i = 0; i <= 2 * t->tail; i++) {
        double x = i - t->tail;

        weight[i] = sampled ? exp(-x * x / (2 * sigma * sigma))
                    : 0.5 * (erf(scale * (x + 0.5)) - erf(scale * (x - 0.5)));
        sum += weight[i];
    }
    for (int i = 0; i <= 2 * t->tail; i++)
        t->weight[i] = (float)(sampled ? weight[i] / sum : weight[i]);
}

/* The index that a position of an axis is read from; -1: a zero. */
static int64_t inside(int64_t at, int64_t count, gaussian_border border)
{
    if (at >= 0 && at < count)
        return at;
    if (border == GAUSSIAN_ZEROS)
        return -1;
    if (count == 1)
        return 0;
    at = (at < 0 ? -at : at) % (2 * (count - 1));
    return at < count ? at : 2 * (count - 1) - at;
}

/* A pass over the voxels along one axis. */
typedef struct pass {
    const float *from;
    float *to;
    int64_t from_step, to_step; /* floats between voxels                                          */
    const int64_t *extent;
    gaussian_border border;
    taps taps;
} pass;

/* Add weight * from to a row. */
static void add_row(float *restrict sum, const float *from, int64_t step, int64_t count,
                    float weight)
{
    if (step == 1)
        for (int64_t k = 0; k < count; k++)
            sum[k] += weight * from[k];
    else
        for (int64_t k = 0; k < count; k++)
            sum[k] += weight * from[k * step];
}

static void write_row(const float *sum, int64_t count, float *to, int64_t step)
{
    for (int64_t k = 0; k < count; k++)
        to[k * step] = sum[k];
}

/* Filter a piece of a row along i or j. 'stride': voxels to the next row along the axis. */
static void filter_across(const pass *p, int64_t voxel, int64_t at, int64_t count, int64_t stride,
                          int64_t length)
{
    float sum[PIECE] = { 0 };

    for (int t = -p->taps.tail; t <= p->taps.tail; t++) {
        int64_t source = inside(at + t, count, p->border);

        if (source >= 0)
            add_row(sum, p->from + (voxel + (source - at) * stride) * p->from_step, p->from_step,
                    length, p->taps.weight[t + p->taps.tail]);
    }
    write_row(sum, length, p->to + voxel * p->to_step, p->to_step);
}

/* Filter 'length' voxels of the row at 'row' along k, from 'first' on. */
static void filter_along(const pass *p, int64_t row, int64_t first, int64_t length)
{
    float line[PIECE + 2 * GAUSSIAN_TAIL_MAX], sum[PIECE] = { 0 };
    int tail = p->taps.tail;

    for (int64_t n = 0; n < length + 2 * tail; n++) {
        int64_t source = inside(first + n - tail, p->extent[2], p->border);

        line[n] = source < 0 ? 0 : p->from[(row + source) * p->from_step];
    }
    for (int t = 0; t <= 2 * tail; t++)
        add_row(sum, line + t, 1, length, p->taps.weight[t]);
    write_row(sum, length, p->to + (row + first) * p->to_step, p->to_step);
}

static void pass_run(const pass *p, int axis)
{
    const int64_t *e = p->extent;

    for (int64_t i = 0; i < e[0]; i++)
        for (int64_t j = 0; j < e[1]; j++)
            for (int64_t k = 0; k < e[2]; k += PIECE) {
                int64_t row = (i * e[1] + j) * e[2];
                int64_t length = e[2] - k < PIECE ? e[2] - k : PIECE;

                if (axis == 2)
                    filter_along(p, row, k, length);
                else
                    filter_across(p, row + k, axis == 0 ? i : j, e[axis],
                                  axis == 0 ? e[1] * e[2] : e[2], length);
            }
}

void gaussian_filter_apply(const gaussian_filter *f, const pons_patch *patch, int channel,
                           float *to, int64_t to_step)
{
    int64_t voxels = patch->extent[0] * patch->extent[1] * patch->extent[2];
    pass p = { .from = patch->image + channel, .from_step = patch->channels,
               .extent = patch->extent, .border = f->border };

    for (int axis = 0; axis < 3; axis++) {
        p.to = axis == 2 ? to : patch->scratch + axis * voxels;
        p.to_step = axis == 2 ? to_step : 1;
        if (f->sigma[axis] > 0 && patch->extent[axis] > 1)
            taps_init(&p.taps, f, f->sigma[axis]);
        else
            p.taps = (taps){ .tail = 0, .weight = { 1 } };
        pass_run(&p, axis);
        p.from = p.to;
        p.from_step = p.to_step;
    }
}
