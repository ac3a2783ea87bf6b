/*
 * interpreter_moments.c - the machine's instructions for means and sums of squared deviations. They
 * are compiled once for each instruction set.
 */
#include "cpu/map/interpreter/interpreter_instruction.h"

#include "base/integer.h"

/* Welford's update of each lane, with fused multiply-adds where the processor has them. */
LANE void moments_vector(vector *mean, vector *square, vector x, vector reciprocal)
{
    vector d = x - *mean, m = vector_fused(d, reciprocal, *mean);

    *square = vector_fused(d, x - m, *square);
    *mean = m;
}

LANE vector moments_reciprocal(const map_instruction *i, const map_unit *u)
{
    return vector_all(1.0f / (float)u->numbers[i->at[0].addressing == MAP_MOMENTS_LANES]);
}

PART part_moments(const map_instruction *i, map_unit *u, REGISTERS)
{
    vector a[8] = { a0, a1, a2, a3, a4, a5, a6, a7 }, reciprocal = moments_reciprocal(i, u);
    float *mean = map_at(u, &i->at[0]), *square = map_at(u, &i->at[1]), *x = (float *)a;

    for (int k = 0; k < u->lanes; k++) {
        vector m = vector_all(mean[k]), s = vector_all(square[k]);
        moments_vector(&m, &s, vector_all(x[k]), reciprocal);
        mean[k] = m[0];
        square[k] = s[0];
    }
    NEXT;
}

SHARED(code_moments)
{
    float *mean = map_at(u, &i->at[0]), *square = map_at(u, &i->at[1]);
    vector reciprocal = moments_reciprocal(i, u);

    if (__builtin_expect(u->lanes != UNIT, 0)) {
        part_moments(i, u, a0, a1, a2, a3, a4, a5, a6, a7);
        return;
    }
#define DO(k)                                                                                     \
    {                                                                                             \
        vector m = vector_load(mean + k * VECTOR_LANES);                                          \
        vector s = vector_load(square + k * VECTOR_LANES);                                        \
        moments_vector(&m, &s, a##k, reciprocal);                                                 \
        vector_store(mean + k * VECTOR_LANES, m);                                                 \
        vector_store(square + k * VECTOR_LANES, s);                                               \
    }
    EACH(DO)
#undef DO
    NEXT;
}

/*
 * Moments of loaded values, with means and sums of squares in registers for all whole periods of a
 * tile. TOGETHER vectors of a period are processed at a time.
 */
enum { TOGETHER = VECTOR_LANES == 16 ? 8 : 4 };

/* The addend: none, one element for each lane, or one vector for all. */
typedef enum plus { PLUS_NOTHING, PLUS_LANES, PLUS_EVEN } plus;

/* Load vector k and, if 'two', vector k + 1 behind 'from', of bf16 or floats. */
LANE void moments_load(const void *from, bool half, int k, bool two, vector *x)
{
    if (half && two) {
        vector_from_bf16((const uint16_t *)from + k * VECTOR_LANES, &x[0], &x[1]);
    } else if (half) {
        x[0] = vector_one_from_bf16((const uint16_t *)from + k * VECTOR_LANES);
    } else {
        x[0] = vector_load((const float *)from + k * VECTOR_LANES);
        if (two)
            x[1] = vector_load((const float *)from + (k + 1) * VECTOR_LANES);
    }
}

LANE vector moments_added(const float *added, plus plus, int k)
{
    return plus == PLUS_NOTHING ? vector_all(0)
                                : vector_load(added + (plus == PLUS_LANES ? k : 0) * VECTOR_LANES);
}

/*
 * Addresses of the values, of the addend and of the accumulators, and the element count of these
 * after the first period.
 */
typedef struct moments_at {
    const char *from;
    const float *added;
    float *mean, *square;
    int period, number;
} moments_at;

/* Accumulate 'count' vectors of each period, from vector 'first' on. */
LANE void moments_vectors(const moments_at *at, bool half, plus plus, int first, int count,
                          int periods)
{
    const int size = half ? 2 : 4;
    const char *from = at->from + first * VECTOR_LANES * size;
    float *means = at->mean + first * VECTOR_LANES, *squares = at->square + first * VECTOR_LANES;
    vector mean[TOGETHER], square[TOGETHER], added[TOGETHER], x[2];

    VECTOR_UNROLL for (int k = 0; k < count; k++) {
        mean[k] = vector_load(means + k * VECTOR_LANES);
        square[k] = vector_load(squares + k * VECTOR_LANES);
        added[k] = moments_added(at->added, plus, first + k);
    }
    for (int j = 0; j < periods; j++, from += at->period * size) {
        vector reciprocal = vector_all(1.0f / (float)(at->number + j));
        if (half) /* the hardware prefetcher is faster for floats */
            prefetch_lines(from, count * VECTOR_LANES * size);
        VECTOR_UNROLL for (int k = 0; k < count; k += 2) {
            moments_load(from, half, k, k + 1 < count, x);
            VECTOR_UNROLL for (int p = 0; p < 2; p++)
                if (k + p < count)
                    moments_vector(&mean[k + p], &square[k + p],
                                   plus == PLUS_NOTHING ? x[p] : added[k + p] + x[p], reciprocal);
        }
    }
    VECTOR_UNROLL for (int k = 0; k < count; k++) {
        vector_store(means + k * VECTOR_LANES, mean[k]);
        vector_store(squares + k * VECTOR_LANES, square[k]);
    }
}

LANE moments_at moments_places(const map_instruction *i, const map_unit *u, int period, int number)
{
    return (moments_at){ map_at(u, &i->at[2]), map_at(u, &i->at[3]), map_at(u, &i->at[0]),
                         map_at(u, &i->at[1]), period, number };
}

LANE void moments_periods(const map_instruction *i, map_unit *u, bool half, plus plus)
{
    const moments_at at = moments_places(i, u, u->period, u->numbers[0]);
    int periods = u->points / u->period - u->periods;

    for (int first = 0; first < u->period / VECTOR_LANES; first += TOGETHER)
        moments_vectors(&at, half, plus, first, TOGETHER, periods);
    u->lane += periods * u->period - UNIT;
    u->periods += periods - 1;
    u->period_lane = u->period - UNIT;
    u->cycle_lane = -UNIT; /* a period is a multiple of the cycle */
}

/* All vectors of 'periods' periods, in parts of nearly equal size. */
LANE void moments_cycles(const moments_at *at, bool half, plus plus, int vectors, int periods)
{
    int parts = ceil_div_int(vectors, TOGETHER);

    for (int p = 0, first = 0, end; p < parts; p++, first = end) {
        end = vectors * (p + 1) / parts;
        switch (end - first) {
        case 8: moments_vectors(at, half, plus, first, TOGETHER, periods); break;
#define CASE(n)                                                                                   \
        case n: moments_vectors(at, half, plus, first, n < TOGETHER ? n : TOGETHER, periods); break;
        CASE(7) CASE(6) CASE(5) CASE(4) CASE(3) CASE(2) CASE(1)
#undef CASE
        }
    }
}

/* Lanes after the last whole vector. */
LANE void moments_rest(const moments_at *at, bool half, plus plus, int first, int end)
{
    vector reciprocal = vector_all(1.0f / (float)at->number);

    for (int k = first; k < end; k++) {
        vector x = vector_all(half ? lane_from_bf16(((const uint16_t *)at->from)[k])
                                   : ((const float *)at->from)[k]);
        vector m = vector_all(at->mean[k]), s = vector_all(at->square[k]);
        if (plus != PLUS_NOTHING)
            x = vector_all(at->added[plus == PLUS_LANES ? k : k % VECTOR_LANES]) + x;
        moments_vector(&m, &s, x, reciprocal);
        at->mean[k] = m[0];
        at->square[k] = s[0];
    }
}

/*
 * Moments of a whole tile, at its first unit. A remainder after the whole cycles has accumulators
 * of its own.
 */
LANE void moments_tile(const map_instruction *i, map_unit *u, bool half, plus plus)
{
    moments_at at = moments_places(i, u, u->cycle, u->cycles[0] + 1);
    int periods = u->points / u->cycle, rest = u->points % u->cycle;

    if (periods > 0)
        moments_cycles(&at, half, plus, u->cycle / VECTOR_LANES, periods);
    if (rest == 0)
        return;
    at.from += (int64_t)periods * u->cycle * (half ? 2 : 4);
    at.mean += 2 * u->cycle;
    at.square += 2 * u->cycle;
    at.number = u->cycles[1] + 1;
    moments_cycles(&at, half, plus, rest / VECTOR_LANES, 1);
    moments_rest(&at, half, plus, rest & -VECTOR_LANES, rest);
}

#define MOMENTS_OF(name, half, plus)                                                              \
    PART part_moments_##name(const map_instruction *i, map_unit *u)                               \
    {                                                                                             \
        vector x[8];                                                                              \
        VECTOR_UNROLL for (int k = 0; k < 8; k += 2)                                              \
            moments_load(map_at(u, &i->at[2]), half, k, true, x + k);                             \
        VECTOR_UNROLL for (int k = 0; k < 8 && plus != PLUS_NOTHING; k++)                         \
            x[k] = moments_added(map_at(u, &i->at[3]), plus, k) + x[k];                           \
        CPU_ISA_NAME(code_moments)(i, u, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);         \
    }                                                                                             \
    PART whole_moments_##name(const map_instruction *i, map_unit *u)                              \
    {                                                                                             \
        if (u->lane == 0)                                                                         \
            moments_tile(i, u, half, plus);                                                       \
        if (i->rows == 2)                                                                         \
            u->lane = u->points - UNIT;                                                           \
        ((instruction)i[1].run)(i + 1, u, NOTHING);                                               \
    }                                                                                             \
    SHARED(code_moments_##name)                                                                   \
    {                                                                                             \
        if (i->rows > 0) {                                                                        \
            whole_moments_##name(i, u);                                                           \
            return;                                                                               \
        }                                                                                         \
        if (u->period_lane != 0 || u->points - u->periods * u->period < u->period) {              \
            part_moments_##name(i, u);                                                            \
            return;                                                                               \
        }                                                                                         \
        moments_periods(i, u, half, plus);                                                        \
        NEXT;                                                                                     \
    }
MOMENTS_OF(f32, false, PLUS_NOTHING)
MOMENTS_OF(f32_plus, false, PLUS_LANES)
MOMENTS_OF(f32_plus_even, false, PLUS_EVEN)
MOMENTS_OF(bf16, true, PLUS_NOTHING)
MOMENTS_OF(bf16_plus, true, PLUS_LANES)
MOMENTS_OF(bf16_plus_even, true, PLUS_EVEN)
