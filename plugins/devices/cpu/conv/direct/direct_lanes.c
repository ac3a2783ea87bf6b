/*
 * direct_lanes.c - the loops over rows of direct.h.
 *
 * The file is compiled once for each instruction set, which CPU_ISA names. Vectors lie along the
 * outputs. A block keeps the sums of several points and one or two vectors of outputs in registers.
 * Counts are constants after inlining, so the loops unroll.
 */
#include "cpu/conv/direct/direct.h"

#include "base/integer.h"
#include "cpu/simd/lane_math.h"
#include "cpu/map/map_lanes.h"
#include "cpu/simd/vector.h"

/* The registers hold the sums of all points, the weights, and one element of x. */
#if defined(__AVX512F__)
enum { POINTS = 12, INPUTS = 8 };
#else
enum { POINTS = 6, INPUTS = 4 };
#endif

/* Every third point has its own pointer. More pointers would not fit the address registers. */
enum { APART = 3, POINTERS = (POINTS + APART - 1) / APART };

/*
 * The number of products in a chain of sums. Each step of a chain rounds the sum so far. So n
 * products in chains of m have an error of sqrt(n m), and in one chain an error of n.
 */
enum { CHAIN = 64 };

/* End a chain and add its sums to y. */
VECTOR void forward_keep(float *y, int count, int vectors, vector sum[POINTS][2], bool first)
{
    VECTOR_UNROLL
    for (int p = 0; p < count; p++)
        VECTOR_UNROLL
        for (int v = 0; v < vectors; v++) {
            float *to = y + (p * vectors + v) * VECTOR_LANES;
            vector_store(to, first ? sum[p][v] : vector_load(to) + sum[p][v]);
            sum[p][v] = vector_all(0);
        }
}

VECTOR void forward_block(float *y, int count, int vectors, const float *x, int64_t step, int taps,
                          const int64_t *tap, int inner, const float *weight)
{
    vector sum[POINTS][2];
    bool first = true;
    int room = CHAIN;

    VECTOR_UNROLL
    for (int p = 0; p < count; p++)
        VECTOR_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[p][v] = vector_all(0);
    for (int t = 0; t < taps; t++)
        for (int j = 0; j < inner;) {
            int some = min_int(inner - j, room);
            const float *row[POINTERS];
            VECTOR_UNROLL
            for (int r = 0; r < POINTERS; r++)
                row[r] = x + tap[t] + r * APART * step + j;
            for (int i = 0; i < some; i++) {
                vector w[2];
                VECTOR_UNROLL
                for (int v = 0; v < vectors; v++)
                    w[v] = vector_load(weight + v * VECTOR_LANES);
                VECTOR_UNROLL
                for (int p = 0; p < count; p++) {
                    vector one = vector_all(row[p / APART][p % APART * step + i]);
                    VECTOR_UNROLL
                    for (int v = 0; v < vectors; v++)
                        sum[p][v] = vector_fused(one, w[v], sum[p][v]);
                }
                weight += vectors * VECTOR_LANES;
            }
            j += some;
            room -= some;
            if (room == 0) {
                forward_keep(y, count, vectors, sum, first);
                first = false;
                room = CHAIN;
            }
        }
    if (first || room < CHAIN)
        forward_keep(y, count, vectors, sum, first);
}

typedef void forward_function(float *y, const float *x, int64_t step, int taps, const int64_t *tap,
                              int inner, const float *weight);

#define FORWARD(COUNT)                                                                            \
    static void forward_one_##COUNT(float *y, const float *x, int64_t step, int taps,             \
                                    const int64_t *tap, int inner, const float *weight)           \
    {                                                                                             \
        forward_block(y, COUNT, 1, x, step, taps, tap, inner, weight);                            \
    }                                                                                             \
    static void forward_two_##COUNT(float *y, const float *x, int64_t step, int taps,             \
                                    const int64_t *tap, int inner, const float *weight)           \
    {                                                                                             \
        forward_block(y, COUNT, 2, x, step, taps, tap, inner, weight);                            \
    }
#define FORWARD_ROW(COUNT) { forward_one_##COUNT, forward_two_##COUNT }

FORWARD(1) FORWARD(2) FORWARD(3) FORWARD(4) FORWARD(5) FORWARD(6)
#if defined(__AVX512F__)
FORWARD(7) FORWARD(8) FORWARD(9) FORWARD(10) FORWARD(11) FORWARD(12)
#endif

static forward_function *const forward_of[POINTS][2] = {
    FORWARD_ROW(1), FORWARD_ROW(2), FORWARD_ROW(3), FORWARD_ROW(4), FORWARD_ROW(5), FORWARD_ROW(6),
#if defined(__AVX512F__)
    FORWARD_ROW(7), FORWARD_ROW(8), FORWARD_ROW(9), FORWARD_ROW(10), FORWARD_ROW(11),
    FORWARD_ROW(12),
#endif
};

/* Blocks have nearly equal sizes, because a short last block would leave most registers idle. */
static void forward(float *y, int width, const float *x, int64_t step, int taps, const int64_t *tap,
                    int inner, const float *weight, int vectors)
{
    int blocks = ceil_div_int(width, POINTS);

    for (int b = 0; b < blocks; b++) {
        int first = width * b / blocks, count = width * (b + 1) / blocks - first;
        forward_of[count - 1][vectors - 1](y + (int64_t)first * vectors * VECTOR_LANES,
                                           x + first * step, step, taps, tap, inner, weight);
    }
}

/* ---- weight gradient: the sums of several inputs and one or two vectors of outputs ----------- */

VECTOR void weight_block(float *sum, int count, int vectors, const direct_rows *r, const float *x,
                         const float *y)
{
    vector total[INPUTS][2];
    int outs = vectors * VECTOR_LANES;

    VECTOR_UNROLL
    for (int j = 0; j < count; j++)
        VECTOR_UNROLL
        for (int v = 0; v < vectors; v++)
            total[j][v] = vector_load(sum + j * outs + v * VECTOR_LANES);
    for (int h = 0; h < r->rows; h++) {
        const float *row = x + h * r->row_step;
        for (int w = 0; w < r->width; w++) {
            vector out[2];
            VECTOR_UNROLL
            for (int v = 0; v < vectors; v++)
                out[v] = vector_load(y + v * VECTOR_LANES);
            VECTOR_UNROLL
            for (int j = 0; j < count; j++) {
                vector one = vector_all(row[j]);
                VECTOR_UNROLL
                for (int v = 0; v < vectors; v++)
                    total[j][v] = vector_fused(one, out[v], total[j][v]);
            }
            row += r->step;
            y += outs;
        }
    }
    VECTOR_UNROLL
    for (int j = 0; j < count; j++)
        VECTOR_UNROLL
        for (int v = 0; v < vectors; v++)
            vector_store(sum + j * outs + v * VECTOR_LANES, total[j][v]);
}

VECTOR void weight_vectors(float *sum, int vectors, const direct_rows *r, const float *x, int inner,
                           const float *y)
{
    int j = 0, outs = vectors * VECTOR_LANES;

    for (; j + INPUTS <= inner; j += INPUTS)
        weight_block(sum + j * outs, INPUTS, vectors, r, x + j, y);
    for (; j + INPUTS / 2 <= inner; j += INPUTS / 2)
        weight_block(sum + j * outs, INPUTS / 2, vectors, r, x + j, y);
    for (; j < inner; j++)
        weight_block(sum + j * outs, 1, vectors, r, x + j, y);
}

static void weight(float *sum, const direct_rows *r, const float *x, int inner, const float *y,
                   int vectors)
{
    if (vectors == 1)
        weight_vectors(sum, 1, r, x, inner, y);
    else
        weight_vectors(sum, 2, r, x, inner, y);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void read_f32(float *restrict to, const void *from, int64_t at, int64_t count)
{
    memcpy(to, (const float *)from + at, (size_t)count * sizeof *to);
}

static void read_bf16(float *restrict to, const void *from, int64_t at, int64_t count)
{
    const uint16_t *m = (const uint16_t *)from + at;

    for (int64_t i = 0; i < count; i++)
        to[i] = lane_from_bf16(m[i]);
}

static void write_f32(void *to, int64_t at, const float *restrict from, int64_t count)
{
    memcpy((float *)to + at, from, (size_t)count * sizeof *from);
}

static void write_bf16(void *to, int64_t at, const float *restrict from, int64_t count)
{
    uint16_t *m = (uint16_t *)to + at;

    for (int64_t i = 0; i < count; i++)
        m[i] = lane_to_bf16(from[i]);
}

static void add(float *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

const direct_lanes CPU_ISA_NAME(direct_lanes) = {
    .lanes = VECTOR_LANES,
    .forward = forward,
    .weight = weight,
    .read = { [PONS_F32] = read_f32, [PONS_BF16] = read_bf16 },
    .write = { [PONS_F32] = write_f32, [PONS_BF16] = write_bf16 },
    .add = add,
};
