/*
 * loops_planar.c - loops over rows with few channels on a side: the vector lies along W.
 */
#include "cpu/conv/few_channels/loops.h"
#include "cpu/conv/few_channels/few_channels_vector.h"

#include "base/integer.h"

/* ---- one row of y to the numbers that it carries to each (kw, i) ----------------------------- */

typedef struct spread {
    float *z;
    int width, pitch, y_pitch, inner, taps, outs;
    const float *const *y;
    const float *const *weight;
} spread;

/* End a chain: add its sums to z. */
VECTOR void spread_keep(const spread *s, int count, int columns, int first, int skip,
                        vector sum[SUMS], bool fresh)
{
    VECTOR_UNROLL for (int j = 0; j < count; j++)
        VECTOR_UNROLL for (int c = 0; c < columns; c++) {
            chain_end(s->z + (int64_t)(skip + j) * s->pitch + first + c * VECTOR_LANES,
                      sum[j * columns + c], fresh);
            sum[j * columns + c] = vector_all(0);
        }
}

VECTOR void spread_block(const spread *s, int count, int columns, int first, int skip)
{
    vector sum[SUMS];
    bool fresh = true;
    int room = LONG_CHAIN;

    VECTOR_UNROLL for (int i = 0; i < count * columns; i++)
        sum[i] = vector_all(0);
    for (int t = 0; t < s->taps; t++) {
        const float *row = s->y[t] + first, *w = s->weight[t] + skip;
        for (int o = 0; o < s->outs;) {
            int end = LONG_CHAIN == 0 || s->outs - o < room ? s->outs : o + room;
            room -= end - o;
            for (; o < end; o++, row += s->y_pitch, w += s->inner) {
                vector v[4];
                VECTOR_UNROLL for (int c = 0; c < columns; c++)
                    v[c] = vector_load(row + c * VECTOR_LANES);
                VECTOR_UNROLL for (int j = 0; j < count; j++) {
                    vector u = vector_all(w[j]);
                    VECTOR_UNROLL for (int c = 0; c < columns; c++)
                        sum[j * columns + c] = vector_fused(v[c], u, sum[j * columns + c]);
                }
            }
            if (LONG_CHAIN == 0 || room > 0)
                continue;
            spread_keep(s, count, columns, first, skip, sum, fresh);
            fresh = false;
            room = LONG_CHAIN;
        }
    }
    if (fresh || LONG_CHAIN == 0 || room < LONG_CHAIN)
        spread_keep(s, count, columns, first, skip, sum, fresh);
}

VECTOR void spread_columns(const spread *s, int count, int skip)
{
    int most = min_int(SUMS / count, 4), w = 0;

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
                          const float *const *y, int y_pitch, int outs,
                          const float *const *weight)
{
    const spread s = { z, width, pitch, y_pitch, inner, taps, outs, y, weight };
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

enum { COLUMNS = 6 };

/* Rows 'from' to 'to' - 1 of y from taps 'begin' to 'end' - 1; sums are [row][o][column]. */
VECTOR void forward_taps(vector *sum, const few_channels_two_rows *f, int outs, int columns,
                         int from, int to, int begin, int end, int first)
{
    for (int t = begin; t < end; t++)
        for (int j = 0; j < f->inner; j++) {
            const float *row = f->x[t] + f->shift[j] + first;
            vector v[COLUMNS];
            VECTOR_UNROLL for (int c = 0; c < columns; c++)
                v[c] = vector_load(row + c * VECTOR_LANES);
            VECTOR_UNROLL for (int r = from; r < to; r++)
                VECTOR_UNROLL for (int o = 0; o < outs; o++) {
                    vector u = vector_all(f->weight[r][t][j * outs + o]);
                    vector *s = sum + (r * outs + o) * columns;
                    VECTOR_UNROLL for (int c = 0; c < columns; c++)
                        s[c] = vector_fused(v[c], u, s[c]);
                }
        }
}

VECTOR void forward_keep(const few_channels_two_rows *f, int outs, int columns, int r, int first,
                         const vector *sum, bool fresh)
{
    VECTOR_UNROLL for (int i = r * outs; i < (r + 1) * outs; i++)
        VECTOR_UNROLL for (int c = 0; c < columns; c++)
            chain_end(f->y + (int64_t)i * f->pitch + first + c * VECTOR_LANES,
                      sum[i * columns + c], fresh);
}

VECTOR void forward_zero(vector *sum, int count)
{
    VECTOR_UNROLL for (int i = 0; i < count; i++)
        sum[i] = vector_all(0);
}

VECTOR void forward_whole(const few_channels_two_rows *f, int outs, int columns, int first)
{
    vector sum[SUMS];

    forward_zero(sum, 2 * outs * columns);
    forward_taps(sum, f, outs, columns, 0, 1, 0, f->end[0], first);
    forward_taps(sum, f, outs, columns, 0, 2, f->end[0], f->end[1], first);
    forward_taps(sum, f, outs, columns, 1, 2, f->end[1], f->end[2], first);
    VECTOR_UNROLL for (int r = 0; r < 2; r++)
        forward_keep(f, outs, columns, r, first, sum, true);
}

/* 'some' taps are a chain; 'fresh' rows of y hold nothing yet. */
VECTOR void forward_chains(const few_channels_two_rows *f, int outs, int columns, int some,
                           int from, int to, int begin, int end, int first, bool fresh[2])
{
    for (int t = begin; t < end; t += some) {
        vector sum[SUMS];
        forward_zero(sum + from * outs * columns, (to - from) * outs * columns);
        forward_taps(sum, f, outs, columns, from, to, t, min_int(t + some, end), first);
        VECTOR_UNROLL for (int r = from; r < to; r++) {
            forward_keep(f, outs, columns, r, first, sum, fresh[r]);
            fresh[r] = false;
        }
    }
}

VECTOR void forward_block(const few_channels_two_rows *f, int outs, int columns, int some,
                          int first)
{
    bool fresh[2] = { true, true };
    vector none[SUMS];

    if (CHAIN == 0) {
        forward_whole(f, outs, columns, first);
        return;
    }
    forward_chains(f, outs, columns, some, 0, 1, 0, f->end[0], first, fresh);
    forward_chains(f, outs, columns, some, 0, 2, f->end[0], f->end[1], first, fresh);
    forward_chains(f, outs, columns, some, 1, 2, f->end[1], f->end[2], first, fresh);
    forward_zero(none, 2 * outs * columns);
    VECTOR_UNROLL for (int r = 0; r < 2; r++)
        if (fresh[r])
            forward_keep(f, outs, columns, r, first, none, true);
}

/* The taps of a chain: no more than most kernels have rows. */
static inline int forward_some(int inner)
{
    int some = ceil_div_int(CHAIN, inner);

    return min_int(some, 3);
}

VECTOR void forward_outs(const few_channels_two_rows *f, int outs)
{
    int most = SUMS / 2 / outs, some = forward_some(f->inner), w = 0;

    for (; w + 5 * VECTOR_LANES < f->width && most >= 6; w += 6 * VECTOR_LANES)
        forward_block(f, outs, 6, some, w);
    for (; w + 2 * VECTOR_LANES < f->width && most >= 3; w += 3 * VECTOR_LANES)
        forward_block(f, outs, 3, some, w);
    for (; w + VECTOR_LANES < f->width && most >= 2; w += 2 * VECTOR_LANES)
        forward_block(f, outs, 2, some, w);
    for (; w < f->width; w += VECTOR_LANES)
        forward_block(f, outs, 1, some, w);
}

static void planar_forward(const few_channels_two_rows *f, int outs)
{
    switch (outs) {
    case 1: forward_outs(f, 1); break;
    case 2: forward_outs(f, 2); break;
    case 3: forward_outs(f, 3); break;
    default: forward_outs(f, 4); break;
    }
}

/* ---- weight gradient ------------------------------------------------------------------------- */

typedef struct weight {
    float *const *sum;
    int width, rows;
    const float *x, *const *y;
    int64_t x_next, y_next;
    const int *shift;
} weight;

/* Each of 16 lanes has its own sum on every processor; 'first' is the vector's first lane. */
VECTOR void weight_block(const weight *g, int lines, int count, int j, int first)
{
    vector total[SUMS];
    const float *x[6], *y[FEW_CHANNELS_LINES];

    VECTOR_UNROLL for (int l = 0; l < lines; l++) {
        y[l] = g->y[l];
        VECTOR_UNROLL for (int i = 0; i < count; i++)
            total[l * count + i]
                = vector_load(g->sum[l] + (int64_t)(j + i) * FEW_CHANNELS_LANES + first);
    }
    VECTOR_UNROLL for (int i = 0; i < count; i++)
        x[i] = g->x + g->shift[j + i];
    for (int row = 0; row < g->rows; row++) {
        for (int w = first; w < g->width; w += FEW_CHANNELS_LANES) {
            vector v[FEW_CHANNELS_LINES];
            VECTOR_UNROLL for (int l = 0; l < lines; l++)
                v[l] = vector_load(y[l] + w);
            VECTOR_UNROLL for (int i = 0; i < count; i++) {
                vector u = vector_load(x[i] + w);
                LOADED_ONCE(u);
                VECTOR_UNROLL for (int l = 0; l < lines; l++)
                    total[l * count + i] = vector_fused(u, v[l], total[l * count + i]);
            }
        }
        VECTOR_UNROLL for (int l = 0; l < lines; l++)
            y[l] += g->y_next;
        VECTOR_UNROLL for (int i = 0; i < count; i++)
            x[i] += g->x_next;
    }
    VECTOR_UNROLL for (int l = 0; l < lines; l++)
        VECTOR_UNROLL for (int i = 0; i < count; i++)
            vector_store(g->sum[l] + (int64_t)(j + i) * FEW_CHANNELS_LANES + first,
                         total[l * count + i]);
}

VECTOR void gemm_weight_rows(const weight *g, int lines, int inner)
{
    for (int first = 0; first < FEW_CHANNELS_LANES; first += VECTOR_LANES) {
        int j = 0;
        for (; j + 6 <= inner && 6 * lines <= SUMS; j += 6)
            weight_block(g, lines, 6, j, first);
        for (; j + 3 <= inner; j += 3)
            weight_block(g, lines, 3, j, first);
        for (; j < inner; j++)
            weight_block(g, lines, 1, j, first);
    }
}

static void planar_weight(float *const *sum, int lines, int width, int rows, const float *x,
                          int64_t x_next, const int *shift, int inner, const float *const *y,
                          int64_t y_next)
{
    const weight g = { sum, width, rows, x, y, x_next, y_next, shift };

    switch (lines) {
    case 1: gemm_weight_rows(&g, 1, inner); break;
    case 2: gemm_weight_rows(&g, 2, inner); break;
    case 3: gemm_weight_rows(&g, 3, inner); break;
    default: gemm_weight_rows(&g, FEW_CHANNELS_LINES, inner); break;
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

const few_channels_planar CPU_ISA_NAME(few_channels_planar) = { planar_spread, planar_forward,
    planar_weight,
                                                                add_rows };
