/*
 * loops_vector.c - loops over rows with many outputs: the vector lies along o.
 *
 * A block keeps up to SUMS sums in registers, enough to hide the latency of a fused multiply-add.
 * Two vectors of outputs share each broadcast element of x.
 */
#include "cpu/conv/few_channels/loops.h"
#include "cpu/conv/few_channels/few_channels_vector.h"

#include "base/integer.h"

enum { POSITIONS = SUMS / 2, FEWER = 4 };

/* The elements of a row of x, and how many are multiplied at a time. */
#if defined(VECTOR_BF16X2)
typedef uint16_t number;
enum { NUMBERS = 2 };
#else
typedef float number;
enum { NUMBERS = 1 };
#endif

typedef float number_loose __attribute__((aligned(2), may_alias));

VECTOR vector spread(const number *p) { return vector_all(*(const number_loose *)p); }

/*
 * Hides from compilers that the next round of a loop reads the same elements again. They would keep
 * these in registers, which the sums need.
 */
#define FORGET(pointer) __asm__("" : "+r"(pointer))

typedef struct forward {
    float *y;
    int width, outs, taps, inner;
    const float *const *x;
    const float *const *weight;
} forward;

/* The taps of a chain, so that all chains are nearly equal. */
static inline int chain_taps(const forward *f)
{
    int chains = CHAIN > 0 ? f->taps * f->inner / (CHAIN + (CHAIN == 0)) : 1;

    return chains > 1 ? ceil_div_int(f->taps, chains) : f->taps;
}

VECTOR void forward_block(const forward *f, int count, int vectors, int step, int first, int o)
{
    int some = chain_taps(f), t = 0;

    do {
        int end = min_int(t + some, f->taps);
        bool fresh = t == 0;
        vector sum[SUMS];
        VECTOR_UNROLL for (int i = 0; i < count * vectors; i++)
            sum[i] = vector_all(0);
        for (; t < end; t++) {
            const number *row = (const number *)f->x[t] + (int64_t)first * step;
            const float *w = f->weight[t] + o;
            for (int j = 0; j < f->inner; j++, row += NUMBERS, w += f->outs) {
                vector v[2];
                VECTOR_UNROLL for (int i = 0; i < vectors; i++)
                    v[i] = vector_load(w + i * VECTOR_LANES);
                FORGET(row);
                VECTOR_UNROLL for (int b = 0; b < count; b++) {
                    vector u = spread(row + b * step);
                    VECTOR_UNROLL for (int i = 0; i < vectors; i++)
                        sum[b * vectors + i] = vector_fused(u, v[i], sum[b * vectors + i]);
                }
            }
        }
        VECTOR_UNROLL for (int b = 0; b < count; b++)
            VECTOR_UNROLL for (int i = 0; i < vectors; i++)
                chain_end(f->y + (int64_t)(first + b) * f->outs + o + i * VECTOR_LANES,
                          sum[b * vectors + i], fresh);
    } while (t < f->taps);
}

VECTOR void forward_columns(const forward *f, int vectors, int step, int o)
{
    int w = 0;

    for (; w + POSITIONS <= f->width; w += POSITIONS)
        forward_block(f, POSITIONS, vectors, step, w, o);
    for (; w + FEWER <= f->width; w += FEWER)
        forward_block(f, FEWER, vectors, step, w, o);
    for (; w < f->width; w++)
        forward_block(f, 1, vectors, step, w, o);
}

VECTOR void forward_step(const forward *f, int step)
{
    int o = 0;

    for (; o + 2 * VECTOR_LANES <= f->outs; o += 2 * VECTOR_LANES)
        forward_columns(f, 2, step, o);
    for (; o < f->outs; o += VECTOR_LANES)
        forward_columns(f, 1, step, o);
}

static void wide_forward(float *y, int width, int outs, int taps, const float *const *x, int step,
                         int inner, const float *const *weight)
{
    const forward f = { y, width, outs, taps, inner, x, weight };

    switch (step) {
    case 1: forward_step(&f, 1); break;
    case 2: forward_step(&f, 2); break;
    case 3: forward_step(&f, 3); break;
    case 4: forward_step(&f, 4); break;
    case 6: forward_step(&f, 6); break;
    case 8: forward_step(&f, 8); break;
    default: forward_step(&f, step); break;
    }
}

/* ---- weight gradient ------------------------------------------------------------------------- */

enum { ROWS = 3, BOTH = VECTOR_LANES == 16 ? 2 : 1 };

typedef struct weight {
    float *const *sum;
    int width, outs, taps, step;
    const float *const *x;
    const float *y;
} weight;

VECTOR void weight_block(const weight *g, int rows, int count, int vectors, int tap, int j, int o)
{
    vector total[SUMS];
    const float *x[ROWS], *y = g->y + o;

    VECTOR_UNROLL for (int r = 0; r < rows; r++) {
        x[r] = g->x[tap + r] + j;
        float *const sum = g->sum[tap + r] + (int64_t)j * g->outs + o;
        VECTOR_UNROLL for (int i = 0; i < count * vectors; i++)
            total[r * count * vectors + i] =
                vector_load(sum + (int64_t)(i / vectors) * g->outs + i % vectors * VECTOR_LANES);
    }
    for (int w = 0; w < g->width; w++, y += g->outs) {
        vector v[2];
        VECTOR_UNROLL for (int i = 0; i < vectors; i++)
            v[i] = vector_load(y + i * VECTOR_LANES);
        VECTOR_UNROLL for (int r = 0; r < rows; r++) {
            VECTOR_UNROLL for (int b = 0; b < count; b++) {
                vector u = vector_all(x[r][b]);
                VECTOR_UNROLL for (int i = 0; i < vectors; i++) {
                    int at = (r * count + b) * vectors + i;
                    total[at] = vector_fused(u, v[i], total[at]);
                }
            }
            x[r] += g->step;
        }
    }
    VECTOR_UNROLL for (int r = 0; r < rows; r++) {
        float *const sum = g->sum[tap + r] + (int64_t)j * g->outs + o;
        VECTOR_UNROLL for (int i = 0; i < count * vectors; i++)
            vector_store(sum + (int64_t)(i / vectors) * g->outs + i % vectors * VECTOR_LANES,
                         total[r * count * vectors + i]);
    }
}

VECTOR void weight_taps(const weight *g, int count, int vectors, int j, int o)
{
    int tap = 0;

    if (count > 4)
        for (; tap + 2 <= g->taps; tap += 2)
            weight_block(g, 2, count, vectors, tap, j, o);
    else
        for (; tap + ROWS <= g->taps; tap += ROWS)
            weight_block(g, ROWS, count, vectors, tap, j, o);
    for (; tap < g->taps; tap++)
        weight_block(g, 1, count, vectors, tap, j, o);
}

VECTOR void weight_columns(const weight *g, int vectors, int inner, int o)
{
    int j = 0;

    for (; j + 6 <= inner; j += 6)
        weight_taps(g, 6, vectors, j, o);
    for (; j + 4 <= inner; j += 4)
        weight_taps(g, 4, vectors, j, o);
    for (; j + 3 <= inner; j += 3)
        weight_taps(g, 3, vectors, j, o);
    for (; j < inner; j++)
        weight_taps(g, 1, vectors, j, o);
}

static void gemm_weight_gradient(float *const *sum, int width, int outs, int taps,
                                 const float *const *x, int step, int inner, const float *y)
{
    const weight g = { sum, width, outs, taps, step, x, y };
    int o = 0;

    for (; BOTH == 2 && o + 2 * VECTOR_LANES <= outs; o += 2 * VECTOR_LANES)
        weight_columns(&g, BOTH, inner, o);
    for (; o < outs; o += VECTOR_LANES)
        weight_columns(&g, 1, inner, o);
}

const few_channels_vector CPU_ISA_NAME(few_channels_vector) = { wide_forward,
    gemm_weight_gradient };
