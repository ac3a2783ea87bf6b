/*
 * narrow_planar.c - loops over rows with few channels on a side: the vector lies along W.
 */
#include "narrow_lanes.h"
#include "narrow_vector.h"

/* ---- one row of y to the numbers that it carries to each (kw, i) ----------------------------- */

typedef struct spread {
    float *z;
    int width, pitch, inner, taps, outs;
    const float *const *y;
    const float *const *weight;
} spread;

VECTOR void spread_block(const spread *s, int count, int columns, int first, int skip)
{
    vector sum[SUMS];

    VECTOR_UNROLL for (int i = 0; i < count * columns; i++)
        sum[i] = vector_all(0);
    for (int t = 0; t < s->taps; t++) {
        const float *row = s->y[t] + first, *w = s->weight[t] + skip;
        for (int o = 0; o < s->outs; o++, row += s->pitch, w += s->inner) {
            vector v[4];
            VECTOR_UNROLL for (int c = 0; c < columns; c++)
                v[c] = vector_load(row + c * VECTOR_LANES);
            VECTOR_UNROLL for (int j = 0; j < count; j++) {
                vector u = vector_all(w[j]);
                VECTOR_UNROLL for (int c = 0; c < columns; c++)
                    sum[j * columns + c] = vector_fused(v[c], u, sum[j * columns + c]);
            }
        }
    }
    VECTOR_UNROLL for (int j = 0; j < count; j++)
        VECTOR_UNROLL for (int c = 0; c < columns; c++)
            vector_store(s->z + (int64_t)(skip + j) * s->pitch + first + c * VECTOR_LANES,
                         sum[j * columns + c]);
}

VECTOR void spread_columns(const spread *s, int count, int skip)
{
    int most = SUMS / count < 4 ? SUMS / count : 4, w = 0;

    for (; w + 4 * VECTOR_LANES <= s->width && most >= 4; w += 4 * VECTOR_LANES)
        spread_block(s, count, 4, w, skip);
    for (; w + 2 * VECTOR_LANES < s->width && most >= 3; w += 3 * VECTOR_LANES)
        spread_block(s, count, 3, w, skip);
    for (; w + VECTOR_LANES < s->width; w += 2 * VECTOR_LANES)
        spread_block(s, count, 2, w, skip);
    for (; w < s->width; w += VECTOR_LANES)
        spread_block(s, count, 1, w, skip);
}

static void planar_spread(float *z, int width, int pitch, int inner, int taps,
                          const float *const *y, int outs, const float *const *weight)
{
    const spread s = { z, width, pitch, inner, taps, outs, y, weight };
    int j = 0;

    for (; j + 6 <= inner; j += 6)
        spread_columns(&s, 6, j);
    for (; j + 4 <= inner; j += 4)
        spread_columns(&s, 4, j);
    for (; j + 3 <= inner; j += 3)
        spread_columns(&s, 3, j);
    for (; j < inner; j++)
        spread_columns(&s, 1, j);
}

/* ---- forward --------------------------------------------------------------------------------- */

VECTOR void forward_block(float *y, int outs, int columns, int pitch, int taps,
                          const float *const *x, const int *shift, int inner, int first,
                          const float *const *weight)
{
    vector sum[12];

    VECTOR_UNROLL for (int i = 0; i < outs * columns; i++)
        sum[i] = vector_all(0);
    for (int t = 0; t < taps; t++) {
        const float *w = weight[t];
        for (int j = 0; j < inner; j++, w += outs) {
            const float *row = x[t] + shift[j] + first;
            VECTOR_UNROLL for (int c = 0; c < columns; c++) {
                vector v = vector_load(row + c * VECTOR_LANES);
                VECTOR_UNROLL for (int o = 0; o < outs; o++)
                    sum[c * outs + o] = vector_fused(v, vector_all(w[o]), sum[c * outs + o]);
            }
        }
    }
    VECTOR_UNROLL for (int c = 0; c < columns; c++)
        VECTOR_UNROLL for (int o = 0; o < outs; o++)
            vector_store(y + (int64_t)o * pitch + first + c * VECTOR_LANES, sum[c * outs + o]);
}

VECTOR void forward_outs(float *y, int outs, int width, int pitch, int taps,
                         const float *const *x, const int *shift, int inner,
                         const float *const *weight)
{
    int w = 0;

    for (; w + 2 * VECTOR_LANES < width; w += 3 * VECTOR_LANES)
        forward_block(y, outs, 3, pitch, taps, x, shift, inner, w, weight);
    for (; w < width; w += VECTOR_LANES)
        forward_block(y, outs, 1, pitch, taps, x, shift, inner, w, weight);
}

static void planar_forward(float *y, int width, int pitch, int outs, int taps,
                           const float *const *x, const int *shift, int inner,
                           const float *const *weight)
{
    switch (outs) {
    case 1: forward_outs(y, 1, width, pitch, taps, x, shift, inner, weight); break;
    case 2: forward_outs(y, 2, width, pitch, taps, x, shift, inner, weight); break;
    case 3: forward_outs(y, 3, width, pitch, taps, x, shift, inner, weight); break;
    default: forward_outs(y, 4, width, pitch, taps, x, shift, inner, weight); break;
    }
}

/* ---- weight gradient ------------------------------------------------------------------------- */

enum { MOST = SUMS / 4 };

/* Each of 16 lanes has a sum of its own, whatever the processor; 'first' is the vector's. */
VECTOR void weight_block(float *sum, int count, int outs, int width, int pitch, const float *x,
                         const int *shift, const float *y, int first)
{
    vector total[SUMS];
    const float *row[MOST];

    VECTOR_UNROLL for (int j = 0; j < count; j++)
        row[j] = x + shift[j];
    VECTOR_UNROLL for (int i = 0; i < count * outs; i++)
        total[i] = vector_load(sum + (int64_t)i * NARROW_LANES + first);
    for (int w = first; w < width; w += NARROW_LANES) {
        vector v[NARROW_CHANNELS];
        VECTOR_UNROLL for (int o = 0; o < outs; o++)
            v[o] = vector_load(y + (int64_t)o * pitch + w);
        VECTOR_UNROLL for (int j = 0; j < count; j++) {
            vector u = vector_load(row[j] + w);
            VECTOR_UNROLL for (int o = 0; o < outs; o++)
                total[j * outs + o] = vector_fused(u, v[o], total[j * outs + o]);
        }
    }
    VECTOR_UNROLL for (int i = 0; i < count * outs; i++)
        vector_store(sum + (int64_t)i * NARROW_LANES + first, total[i]);
}

VECTOR void weight_outs(float *sum, int outs, int width, int pitch, const float *x,
                        const int *shift, int inner, const float *y)
{
    for (int first = 0; first < NARROW_LANES; first += VECTOR_LANES) {
        int j = 0;
        for (; j + MOST <= inner; j += MOST)
            weight_block(sum + (int64_t)j * outs * NARROW_LANES, MOST, outs, width, pitch, x,
                         shift + j, y, first);
        for (; j + 3 <= inner; j += 3)
            weight_block(sum + (int64_t)j * outs * NARROW_LANES, 3, outs, width, pitch, x,
                         shift + j, y, first);
        for (; j < inner; j++)
            weight_block(sum + (int64_t)j * outs * NARROW_LANES, 1, outs, width, pitch, x,
                         shift + j, y, first);
    }
}

static void planar_weight(float *sum, int width, int pitch, int outs, const float *x,
                          const int *shift, int inner, const float *y)
{
    switch (outs) {
    case 1: weight_outs(sum, 1, width, pitch, x, shift, inner, y); break;
    case 2: weight_outs(sum, 2, width, pitch, x, shift, inner, y); break;
    case 3: weight_outs(sum, 3, width, pitch, x, shift, inner, y); break;
    default: weight_outs(sum, 4, width, pitch, x, shift, inner, y); break;
    }
}

/* ---- sums of shifted rows -------------------------------------------------------------------- */

static void add_rows(float *to, int width, int count, const float *const *from)
{
    for (int w = 0; w < width; w += VECTOR_LANES) {
        vector sum = vector_all(0);
        for (int i = 0; i < count; i++)
            sum += vector_load(from[i] + w);
        vector_store(to + w, sum);
    }
}

const narrow_planar CPU_ROW_NAME(narrow_planar) = { planar_spread, planar_forward, planar_weight,
                                                    add_rows };
