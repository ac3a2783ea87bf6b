/*
 * gaussian_filter.c - smooth one channel of a patch by a Gaussian along each axis.
 *
 * The whole channel is filtered along i into the first half of the scratch memory. Each plane of
 * it is then filtered along j into the beginning of the second half, and along k to the destination,
 * while it is in the cache. Along i and j whole rows are added; along k a row is copied in pieces
 * with its neighbours, so that every loop runs over a row.
 */
#include "gaussian_filter.h"

#include <math.h>
#include <string.h>

#include "base/avx2_clone.h"
#include "base/integer.h"

enum { PIECE = 512, TAPS_MAX = 2 * GAUSSIAN_TAIL_MAX + 1, LANES = 8, VECTORS = 4 };

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

const char *const gaussian_approx_words[] = { "erf", "sampled", NULL };
const char *const gaussian_border_words[] = { "zeros", "reflect", NULL };

/* Weights of voxels -tail .. tail; count = 2 tail + 1. */
typedef struct taps {
    int count;
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
    int tail = tail_of(f, sigma);

    t->count = 2 * tail + 1;
    for (int i = 0; i < t->count; i++) {
        double x = i - tail;

        weight[i] = sampled ? exp(-x * x / (2 * sigma * sigma))
                    : 0.5 * (erf(scale * (x + 0.5)) - erf(scale * (x - 0.5)));
        sum += weight[i];
    }
    for (int i = 0; i < t->count; i++)
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

/* ---- weighted sums of rows ------------------------------------------------------------------- */

/* to[n] = sum over t of weight[t] row[t][n], in the order of t. */
typedef void sum_rows(const taps *t, const float *const row[], int64_t count, float *to);

AVX2_BODY void sum_rows_body(const taps *t, const float *const row[], int64_t count,
                             float *restrict to)
{
    int64_t n = 0;

    for (; n + VECTORS * LANES <= count; n += VECTORS * LANES) {
        lanes a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

        for (int i = 0; i < t->count; i++) {
            const lanes *x = (const lanes *)(row[i] + n);

            a += t->weight[i] * x[0];
            b += t->weight[i] * x[1];
            c += t->weight[i] * x[2];
            d += t->weight[i] * x[3];
        }
        memcpy(to + n, (const lanes[VECTORS]){ a, b, c, d }, VECTORS * sizeof a);
    }
    for (; n < count; n++) {
        float sum = 0;

        for (int i = 0; i < t->count; i++)
            sum += t->weight[i] * row[i][n];
        to[n] = sum;
    }
}

AVX2_CLONE void sum_rows_avx2(const taps *t, const float *const row[], int64_t count, float *to)
{
    sum_rows_body(t, row, count, to);
}

static void sum_rows_plain(const taps *t, const float *const row[], int64_t count, float *to)
{
    sum_rows_body(t, row, count, to);
}

/* ---- passes ---------------------------------------------------------------------------------- */

typedef struct filter_run {
    const int64_t *extent;
    gaussian_border border;
    taps taps[3];
    sum_rows *sum;
} filter_run;

/*
 * Filter row 'at' of an axis, whose rows are 'stride' floats apart, across the rows. Rows beyond
 * the border are zeros.
 */
static void filter_across(const filter_run *f, int axis, const float *from, int64_t at,
                          int64_t stride, float *to)
{
    const taps *all = &f->taps[axis];
    const float *row[TAPS_MAX];
    taps used;

    used.count = 0;
    for (int t = 0; t < all->count; t++) {
        int64_t source = inside(at + t - all->count / 2, f->extent[axis], f->border);

        if (source < 0)
            continue;
        row[used.count] = from + source * stride;
        used.weight[used.count++] = all->weight[t];
    }
    f->sum(&used, row, f->extent[2], to);
}

/* Filter a row along k in pieces. */
static void filter_along(const filter_run *f, const float *from, float *to, int64_t to_step)
{
    const taps *t = &f->taps[2];
    float line[PIECE + 2 * GAUSSIAN_TAIL_MAX], sum[PIECE];
    const float *row[TAPS_MAX];
    int tail = t->count / 2;

    for (int i = 0; i < t->count; i++)
        row[i] = line + i;
    for (int64_t k = 0; k < f->extent[2]; k += PIECE) {
        int64_t length = min_i64(f->extent[2] - k, PIECE);

        for (int64_t n = 0; n < length + 2 * tail; n++) {
            int64_t source = inside(k + n - tail, f->extent[2], f->border);

            line[n] = source < 0 ? 0 : from[source];
        }
        f->sum(t, row, length, to_step == 1 ? to + k : sum);
        for (int64_t n = 0; n < length && to_step != 1; n++)
            to[(k + n) * to_step] = sum[n];
    }
}

/* The channel itself if it is the only one, or a copy of it in the second half of the memory. */
static const float *channel_rows(const pons_patch *patch, int channel, int64_t voxels)
{
    float *to = patch->scratch + voxels;

    if (patch->channels == 1)
        return patch->image;
    for (int64_t n = 0; n < voxels; n++)
        to[n] = patch->image[n * patch->channels + channel];
    return to;
}

void gaussian_filter_apply(const gaussian_filter *f, const pons_patch *patch, int channel,
                           float *to, int64_t to_step)
{
    const int64_t *e = patch->extent;
    int64_t plane = e[1] * e[2], voxels = e[0] * plane;
    const float *from = channel_rows(patch, channel, voxels);
    float *first = patch->scratch, *second = first + voxels;
    filter_run run = { .extent = e, .border = f->border,
                       .sum = AVX2_CHOOSE(sum_rows_avx2, sum_rows_plain) };

    for (int axis = 0; axis < 3; axis++) {
        run.taps[axis] = (taps){ .count = 1, .weight = { 1 } };
        if (f->sigma[axis] > 0 && e[axis] > 1)
            taps_init(&run.taps[axis], f, f->sigma[axis]);
    }
    for (int64_t i = 0; i < e[0]; i++)
        for (int64_t j = 0; j < e[1]; j++)
            filter_across(&run, 0, from + j * e[2], i, plane, first + i * plane + j * e[2]);
    for (int64_t i = 0; i < e[0]; i++) {
        for (int64_t j = 0; j < e[1]; j++)
            filter_across(&run, 1, first + i * plane, j, e[2], second + j * e[2]);
        for (int64_t j = 0; j < e[1]; j++)
            filter_along(&run, second + j * e[2], to + (i * plane + j * e[2]) * to_step, to_step);
    }
}
