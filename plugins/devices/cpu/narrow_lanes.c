/*
 * narrow_lanes.c - the loops over rows of narrow.h. Compiled once for each kind of processor, with
 * CPU_ROW naming it. Each accumulator belongs to one output (or to one of 16 fixed partial sums), so
 * the order of sums does not depend on the width of the processor's vectors.
 *
 * The blocks keep 8 to 12 accumulators busy, as many as hide the latency of a fused product and sum;
 * always_inline with constant counts makes the compiler unroll them into registers.
 */
#include "narrow.h"

#include "lane.h"
#include "map_lanes.h"

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16 };
#elif defined(__FMA__)
#include <immintrin.h>
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef float vector __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vector load(const float *p) { return (vector)*(const loose *)p; }
INLINE void store(float *p, vector v) { *(loose *)p = (loose)v; }
INLINE vector all(float x) { return x - (vector){ 0 }; }

/* a b + c, fused where the processor can. */
#if defined(__AVX512F__)
INLINE vector fused(vector a, vector b, vector c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__FMA__)
INLINE vector fused(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); }
#else
INLINE vector fused(vector a, vector b, vector c) { return a * b + c; }
#endif

/* ---- many outputs: the vector lies along o --------------------------------------------------- */

enum { WIDE_BLOCK = 8 };

INLINE void wide_forward_block(float *y, int count, int outs, int taps, const float *const *x,
                               int first, int step, int inner, const float *const *weight, int o)
{
    vector sum[WIDE_BLOCK];

    for (int b = 0; b < count; b++)
        sum[b] = all(0);
    for (int t = 0; t < taps; t++) {
        const float *row = x[t] + (int64_t)first * step;
        for (int j = 0; j < inner; j++) {
            vector w = load(weight[t] + (int64_t)j * outs + o);
            for (int b = 0; b < count; b++)
                sum[b] = fused(all(row[b * step + j]), w, sum[b]);
        }
    }
    for (int b = 0; b < count; b++)
        store(y + (int64_t)(first + b) * outs, sum[b]);
}

static void wide_forward(float *y, int width, int outs, int taps, const float *const *x, int step,
                         int inner, const float *const *weight)
{
    for (int o = 0; o < outs; o += LANES) {
        int w = 0;
        for (; w + WIDE_BLOCK <= width; w += WIDE_BLOCK)
            wide_forward_block(y + o, WIDE_BLOCK, outs, taps, x, w, step, inner, weight, o);
        for (; w < width; w++)
            wide_forward_block(y + o, 1, outs, taps, x, w, step, inner, weight, o);
    }
}

INLINE void wide_weight_block(float *sum, int count, int width, int outs, const float *x, int step,
                              const float *y)
{
    vector total[12];

    for (int j = 0; j < count; j++)
        total[j] = load(sum + (int64_t)j * outs);
    for (int w = 0; w < width; w++) {
        vector v = load(y + (int64_t)w * outs);
        for (int j = 0; j < count; j++)
            total[j] = fused(all(x[w * step + j]), v, total[j]);
    }
    for (int j = 0; j < count; j++)
        store(sum + (int64_t)j * outs, total[j]);
}

static void wide_weight(float *sum, int width, int outs, const float *x, int step, int inner,
                        const float *y)
{
    for (int o = 0; o < outs; o += LANES) {
        int j = 0;
        for (; j + 6 <= inner; j += 6)
            wide_weight_block(sum + (int64_t)j * outs + o, 6, width, outs, x + j, step, y + o);
        for (; j + 3 <= inner; j += 3)
            wide_weight_block(sum + (int64_t)j * outs + o, 3, width, outs, x + j, step, y + o);
        for (; j < inner; j++)
            wide_weight_block(sum + (int64_t)j * outs + o, 1, width, outs, x + j, step, y + o);
    }
}

/* ---- few outputs: the vector lies along W ---------------------------------------------------- */

INLINE void planar_spread_block(float *z, int count, int columns, int pitch, int inner, int taps,
                                const float *const *y, int first, int outs,
                                const float *const *weight, int skip)
{
    vector sum[12];

    for (int i = 0; i < count * columns; i++)
        sum[i] = all(0);
    for (int t = 0; t < taps; t++) {
        for (int o = 0; o < outs; o++) {
            const float *row = y[t] + (int64_t)o * pitch + first;
            const float *w = weight[t] + (int64_t)o * inner + skip;
            for (int c = 0; c < columns; c++) {
                vector v = load(row + c * LANES);
                for (int j = 0; j < count; j++)
                    sum[c * count + j] = fused(v, all(w[j]), sum[c * count + j]);
            }
        }
    }
    for (int c = 0; c < columns; c++)
        for (int j = 0; j < count; j++)
            store(z + (int64_t)j * pitch + first + c * LANES, sum[c * count + j]);
}

INLINE void planar_spread_columns(float *z, int count, int width, int pitch, int inner, int taps,
                                  const float *const *y, int outs, const float *const *weight,
                                  int skip)
{
    int w = 0;

    for (; w + 2 * LANES <= width; w += 2 * LANES)
        planar_spread_block(z, count, 2, pitch, inner, taps, y, w, outs, weight,
                            skip);
    for (; w < width; w += LANES)
        planar_spread_block(z, count, 1, pitch, inner, taps, y, w, outs, weight,
                            skip);
}

static void planar_spread(float *z, int width, int pitch, int inner, int taps,
                          const float *const *y, int outs, const float *const *weight)
{
    int j = 0;

    for (; j + 6 <= inner; j += 6)
        planar_spread_columns(z + (int64_t)j * pitch, 6, width, pitch, inner, taps, y, outs,
                              weight, j);
    for (; j + 3 <= inner; j += 3)
        planar_spread_columns(z + (int64_t)j * pitch, 3, width, pitch, inner, taps, y, outs,
                              weight, j);
    for (; j < inner; j++)
        planar_spread_columns(z + (int64_t)j * pitch, 1, width, pitch, inner, taps, y, outs,
                              weight, j);
}

INLINE void planar_forward_block(float *y, int outs, int columns, int pitch, int taps,
                                 const float *const *x, const int *shift, int inner, int first,
                                 const float *const *weight)
{
    vector sum[12];

    for (int i = 0; i < outs * columns; i++)
        sum[i] = all(0);
    for (int t = 0; t < taps; t++) {
        for (int j = 0; j < inner; j++) {
            const float *row = x[t] + shift[j] + first;
            const float *w = weight[t] + (int64_t)j * outs;
            for (int c = 0; c < columns; c++) {
                vector v = load(row + c * LANES);
                for (int o = 0; o < outs; o++)
                    sum[c * outs + o] = fused(v, all(w[o]), sum[c * outs + o]);
            }
        }
    }
    for (int c = 0; c < columns; c++)
        for (int o = 0; o < outs; o++)
            store(y + (int64_t)o * pitch + first + c * LANES, sum[c * outs + o]);
}

INLINE void planar_forward_outs(float *y, int outs, int width, int pitch, int taps,
                                const float *const *x, const int *shift, int inner,
                                const float *const *weight)
{
    int w = 0;

    for (; w + 3 * LANES <= width; w += 3 * LANES)
        planar_forward_block(y, outs, 3, pitch, taps, x, shift, inner, w, weight);
    for (; w < width; w += LANES)
        planar_forward_block(y, outs, 1, pitch, taps, x, shift, inner, w, weight);
}

static void planar_forward(float *y, int width, int pitch, int outs, int taps,
                           const float *const *x, const int *shift, int inner,
                           const float *const *weight)
{
    switch (outs) {
    case 1: planar_forward_outs(y, 1, width, pitch, taps, x, shift, inner, weight); break;
    case 2: planar_forward_outs(y, 2, width, pitch, taps, x, shift, inner, weight); break;
    case 3: planar_forward_outs(y, 3, width, pitch, taps, x, shift, inner, weight); break;
    default: planar_forward_outs(y, 4, width, pitch, taps, x, shift, inner, weight); break;
    }
}

/* Lanes first .. first + LANES - 1 of each group of 16 are summed apart: 16 sums on every processor. */
INLINE void planar_weight_block(float *sum, int count, int outs, int width, int pitch,
                                const float *x, const int *shift, const float *y, int first)
{
    vector total[12];

    for (int i = 0; i < count * outs; i++)
        total[i] = load(sum + (int64_t)i * NARROW_LANES + first);
    for (int w = first; w < width; w += NARROW_LANES) {
        vector v[NARROW_CHANNELS];
        for (int o = 0; o < outs; o++)
            v[o] = load(y + (int64_t)o * pitch + w);
        for (int j = 0; j < count; j++) {
            vector u = load(x + shift[j] + w);
            for (int o = 0; o < outs; o++)
                total[j * outs + o] = fused(u, v[o], total[j * outs + o]);
        }
    }
    for (int i = 0; i < count * outs; i++)
        store(sum + (int64_t)i * NARROW_LANES + first, total[i]);
}

INLINE void planar_weight_outs(float *sum, int outs, int width, int pitch, const float *x,
                               const int *shift, int inner, const float *y)
{
    for (int first = 0; first < NARROW_LANES; first += LANES) {
        int j = 0;
        for (; j + 3 <= inner; j += 3)
            planar_weight_block(sum + (int64_t)j * outs * NARROW_LANES, 3, outs, width, pitch, x,
                                shift + j, y, first);
        for (; j < inner; j++)
            planar_weight_block(sum + (int64_t)j * outs * NARROW_LANES, 1, outs, width, pitch, x,
                                shift + j, y, first);
    }
}

static void planar_weight(float *sum, int width, int pitch, int outs, const float *x,
                          const int *shift, int inner, const float *y)
{
    switch (outs) {
    case 1: planar_weight_outs(sum, 1, width, pitch, x, shift, inner, y); break;
    case 2: planar_weight_outs(sum, 2, width, pitch, x, shift, inner, y); break;
    case 3: planar_weight_outs(sum, 3, width, pitch, x, shift, inner, y); break;
    default: planar_weight_outs(sum, 4, width, pitch, x, shift, inner, y); break;
    }
}

/* ---- channels apart and together ------------------------------------------------------------- */

INLINE void split_channels(float *to, int pitch, const float *from, int width, int channels)
{
    for (int c = 0; c < channels; c++)
        for (int w = 0; w < width; w++)
            to[(int64_t)c * pitch + w] = from[w * channels + c];
}

INLINE void join_channels(float *restrict to, const float *restrict from, int pitch, int width,
                          int channels)
{
    for (int w = 0; w < width; w++)
        for (int c = 0; c < channels; c++)
            to[w * channels + c] = from[(int64_t)c * pitch + w];
}

static void split(float *to, int pitch, const float *from, int width, int channels)
{
    switch (channels) {
    case 1: split_channels(to, pitch, from, width, 1); break;
    case 2: split_channels(to, pitch, from, width, 2); break;
    case 3: split_channels(to, pitch, from, width, 3); break;
    case 4: split_channels(to, pitch, from, width, 4); break;
    default: split_channels(to, pitch, from, width, channels); break;
    }
}

static void join(float *to, const float *from, int pitch, int width, int channels)
{
    switch (channels) {
    case 1: join_channels(to, from, pitch, width, 1); break;
    case 2: join_channels(to, from, pitch, width, 2); break;
    case 3: join_channels(to, from, pitch, width, 3); break;
    case 4: join_channels(to, from, pitch, width, 4); break;
    default: join_channels(to, from, pitch, width, channels); break;
    }
}

/* ---- types in memory ------------------------------------------------------------------------- */

static void from_bf16(float *to, const uint16_t *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = lane_from_bf16(from[i]);
}

static void to_bf16(uint16_t *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = lane_to_bf16(from[i]);
}

const narrow_lanes CPU_ROW_NAME(narrow_lanes) = {
    wide_forward, wide_weight, planar_spread, planar_forward, planar_weight, split, join,
    from_bf16, to_bf16
};
