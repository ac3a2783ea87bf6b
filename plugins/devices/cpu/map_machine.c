/*
 * map_machine.c - the instructions of map_machine.h. Compiled once for each kind of processor.
 *
 * Every instruction ends by calling the next one with the eight registers of the accumulator as
 * arguments.
 */
#include "map_lanes.h"
#include "map_vector.h"

#define UNIT (8 * VECTOR_LANES)

#define REGISTERS                                                                                 \
    vector a0, vector a1, vector a2, vector a3, vector a4, vector a5, vector a6, vector a7
#define INSTRUCTION(name)                                                                         \
    static void name(const map_instruction *i, map_unit *u, REGISTERS)
#define NEXT ((instruction)i[1].run)(i + 1, u, a0, a1, a2, a3, a4, a5, a6, a7)
#define NOTHING                                                                                   \
    vector_all(0), vector_all(0), vector_all(0), vector_all(0), vector_all(0), vector_all(0),     \
        vector_all(0), vector_all(0)
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

typedef void (*instruction)(const map_instruction *i, map_unit *u, REGISTERS);

#define FLOATS(k) const vector_loose *m##k = map_at(u, &i->at[k]);

/*
 * What is seldom, as units whose lanes do not all exist, goes in instructions of its own: arrays and
 * calls would cost the others time.
 */
#define PART static __attribute__((noinline)) void

INSTRUCTION(code_end)
{
    (void)i, (void)u, (void)a0, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6;
    (void)a7;
}

/* ---- memory ---------------------------------------------------------------------------------- */

INSTRUCTION(code_load_f32)
{
    FLOATS(0)
#define DO(k) a##k = m0[k];
    EACH(DO)
#undef DO
    NEXT;
}

INSTRUCTION(code_load_even)
{
    FLOATS(0)
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = m0[0];
    NEXT;
}

INSTRUCTION(code_load_bf16)
{
    const uint16_t *m = map_at(u, &i->at[0]);

    vector_from_bf16(m, &a0, &a1);
    vector_from_bf16(m + 2 * VECTOR_LANES, &a2, &a3);
    vector_from_bf16(m + 4 * VECTOR_LANES, &a4, &a5);
    vector_from_bf16(m + 6 * VECTOR_LANES, &a6, &a7);
    NEXT;
}

INSTRUCTION(code_load_u8)
{
    const uint8_t *m = map_at(u, &i->at[0]);
#define DO(k) a##k = vector_from_u8(m + k * VECTOR_LANES);
    EACH(DO)
#undef DO
    NEXT;
}

/* Two channels beside each other. Where not all lanes of a unit exist they go one by one. */
#define PAIR(name, TYPE, FROM, FROM_ONE, second)                                                  \
    PART part_pair_##name(const map_instruction *i, map_unit *u)                                  \
    {                                                                                             \
        const TYPE *m = (const TYPE *)map_at(u, &i->at[0]) + 2 * u->lane;                         \
        float x[UNIT] = { 0 };                                                                    \
        const vector_loose *v = (const vector_loose *)x;                                          \
        for (int k = 0; k < u->lanes; k++)                                                        \
            x[k] = FROM_ONE(m[2 * k + second]);                                                   \
        ((instruction)i[1].run)(i + 1, u, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);        \
    }                                                                                             \
    INSTRUCTION(code_pair_##name)                                                                 \
    {                                                                                             \
        const TYPE *m = (const TYPE *)map_at(u, &i->at[0]) + 2 * u->lane;                         \
        if (__builtin_expect(u->lanes != UNIT, 0)) {                                              \
            part_pair_##name(i, u);                                                               \
            return;                                                                               \
        }                                                                                         \
        a0 = FROM(m, second), a1 = FROM(m + 2 * VECTOR_LANES, second);                            \
        a2 = FROM(m + 4 * VECTOR_LANES, second), a3 = FROM(m + 6 * VECTOR_LANES, second);         \
        a4 = FROM(m + 8 * VECTOR_LANES, second), a5 = FROM(m + 10 * VECTOR_LANES, second);        \
        a6 = FROM(m + 12 * VECTOR_LANES, second), a7 = FROM(m + 14 * VECTOR_LANES, second);       \
        NEXT;                                                                                     \
    }
LANE float same(float x) { return x; }
PAIR(first_f32, float, vector_pairs_from_f32, same, 0)
PAIR(second_f32, float, vector_pairs_from_f32, same, 1)
PAIR(first_bf16, uint16_t, vector_pairs_from_bf16, lane_from_bf16, 0)
PAIR(second_bf16, uint16_t, vector_pairs_from_bf16, lane_from_bf16, 1)

INSTRUCTION(code_keep)
{
    vector_loose *m = map_at(u, &i->at[0]);
#define DO(k) m[k] = a##k;
    EACH(DO)
#undef DO
    NEXT;
}

#define NEEDS_CARE                                                                                \
    __builtin_expect(vector_needs_care(a0, a1) | vector_needs_care(a2, a3)                        \
                     | vector_needs_care(a4, a5) | vector_needs_care(a6, a7), 0)
/* TO each two vectors of the accumulator as bf16. */
#define HALVES(TO, how)                                                                           \
    TO(m, vector_halves_##how(a0, a1));                                                           \
    TO(m + 2 * VECTOR_LANES, vector_halves_##how(a2, a3));                                        \
    TO(m + 4 * VECTOR_LANES, vector_halves_##how(a4, a5));                                        \
    TO(m + 6 * VECTOR_LANES, vector_halves_##how(a6, a7));

PART part_store_bf16(const map_instruction *i, map_unit *u, REGISTERS)
{
    uint16_t *m = map_at(u, &i->at[0]);

    HALVES(vector_store_halves, of)
    NEXT;
}

INSTRUCTION(code_store_bf16)
{
    uint16_t *m = map_at(u, &i->at[0]);

    if (NEEDS_CARE) {
        part_store_bf16(i, u, a0, a1, a2, a3, a4, a5, a6, a7);
        return;
    }
    HALVES(vector_store_halves, quick)
    NEXT;
}

/* Whole lines of memory go past the cache; what is not at the begin of a line cannot. */
LANE bool is_line(const void *m) { return (uintptr_t)m % MAP_LINE == 0; }

INSTRUCTION(code_stream_f32)
{
    float *m = map_at(u, &i->at[0]);

    if (!is_line(m)) {
        code_keep(i, u, a0, a1, a2, a3, a4, a5, a6, a7);
        return;
    }
#define DO(k) vector_stream(m + k * VECTOR_LANES, a##k);
    EACH(DO)
#undef DO
    NEXT;
}

INSTRUCTION(code_stream_bf16)
{
    uint16_t *m = map_at(u, &i->at[0]);

    if (NEEDS_CARE || !is_line(m)) {
        part_store_bf16(i, u, a0, a1, a2, a3, a4, a5, a6, a7);
        return;
    }
    HALVES(vector_stream_halves, quick)
    NEXT;
}

/*
 * Groups of MAP_ROW lanes, one or a few vectors each. Where not all lanes of a unit exist they go one
 * by one.
 */
#define GROUPS(name, TYPE, FROM, TO, CARE, FROM_ONE, TO_ONE)                                      \
    PART part_groups_##name(const map_instruction *i, map_unit *u)                                \
    {                                                                                             \
        const int32_t *at = ((const map_access *)i->what)->table + u->lane;                       \
        const TYPE *m = map_at(u, &i->at[0]);                                                     \
        float x[UNIT] = { 0 };                                                                    \
        const vector_loose *v = (const vector_loose *)x;                                          \
        for (int k = 0; k < u->lanes; k++)                                                        \
            x[k] = FROM_ONE(m[at[k]]);                                                            \
        ((instruction)i[1].run)(i + 1, u, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);        \
    }                                                                                             \
    INSTRUCTION(code_groups_##name)                                                               \
    {                                                                                             \
        const int32_t *at = ((const map_access *)i->what)->table + u->lane;                       \
        const TYPE *m = map_at(u, &i->at[0]);                                                     \
        if (__builtin_expect(u->lanes != UNIT, 0)) {                                              \
            part_groups_##name(i, u);                                                             \
            return;                                                                               \
        }                                                                                         \
        a0 = FROM(m + at[0]), a1 = FROM(m + at[VECTOR_LANES]);                                    \
        a2 = FROM(m + at[2 * VECTOR_LANES]), a3 = FROM(m + at[3 * VECTOR_LANES]);                 \
        a4 = FROM(m + at[4 * VECTOR_LANES]), a5 = FROM(m + at[5 * VECTOR_LANES]);                 \
        a6 = FROM(m + at[6 * VECTOR_LANES]), a7 = FROM(m + at[7 * VECTOR_LANES]);                 \
        NEXT;                                                                                     \
    }                                                                                             \
    PART part_store_groups_##name(const map_instruction *i, map_unit *u, REGISTERS)               \
    {                                                                                             \
        const int32_t *at = ((const map_access *)i->what)->table + u->lane;                       \
        TYPE *m = map_at(u, &i->at[0]);                                                           \
        vector a[8] = { a0, a1, a2, a3, a4, a5, a6, a7 };                                         \
        const float *x = (const float *)a;                                                        \
        for (int k = 0; k < u->lanes; k++)                                                        \
            m[at[k]] = TO_ONE(x[k]);                                                              \
        NEXT;                                                                                     \
    }                                                                                             \
    INSTRUCTION(code_store_groups_##name)                                                         \
    {                                                                                             \
        const int32_t *at = ((const map_access *)i->what)->table + u->lane;                       \
        TYPE *m = map_at(u, &i->at[0]);                                                           \
        if (__builtin_expect(u->lanes != UNIT, 0) || CARE) {                                      \
            part_store_groups_##name(i, u, a0, a1, a2, a3, a4, a5, a6, a7);                       \
            return;                                                                               \
        }                                                                                         \
        TO(m + at[0], a0), TO(m + at[VECTOR_LANES], a1);                                          \
        TO(m + at[2 * VECTOR_LANES], a2), TO(m + at[3 * VECTOR_LANES], a3);                       \
        TO(m + at[4 * VECTOR_LANES], a4), TO(m + at[5 * VECTOR_LANES], a5);                       \
        TO(m + at[6 * VECTOR_LANES], a6), TO(m + at[7 * VECTOR_LANES], a7);                       \
        NEXT;                                                                                     \
    }
GROUPS(f32, float, vector_load, vector_store, false, same, same)
GROUPS(bf16, uint16_t, vector_one_from_bf16, vector_one_to_bf16_quick, NEEDS_CARE, lane_from_bf16,
       lane_to_bf16)

LANE void ask(const char *at, int size)
{
    VECTOR_UNROLL for (int line = 0; line < size; line += 64) {
        __builtin_prefetch(at + MAP_AHEAD + line, 0, 3);
        __builtin_prefetch(at + MAP_FAR_AHEAD + line, 0, 2);
    }
}

INSTRUCTION(code_fetch_32)
{
    ask(map_at(u, &i->at[0]), 4 * UNIT);
    NEXT;
}

INSTRUCTION(code_fetch_16)
{
    ask(map_at(u, &i->at[0]), 2 * UNIT);
    NEXT;
}

INSTRUCTION(code_fetch_8)
{
    ask(map_at(u, &i->at[0]), UNIT);
    NEXT;
}

/* Behind a tile mostly comes the next piece of the cut axis. */
INSTRUCTION(code_fetch_groups)
{
    const map_access *a = i->what;
    const char *at = map_at(u, &i->at[0]);
    int size = i->rows, lane = u->lane + MAP_AHEAD / size;
    int behind = lane - u->points;

    if (behind >= 0) {
        at += a->outer[u->plan->cut] * size;
        lane = behind;
    }
    for (int k = lane; k < lane + UNIT && k < u->points; k += MAP_ROW)
        __builtin_prefetch(at + (int64_t)a->table[k] * size, 0, 3);
    NEXT;
}

INSTRUCTION(code_fetch_interleaved)
{
    const char *at = (const char *)map_at(u, &i->at[0]) + (int64_t)u->lane * i->rows + MAP_AHEAD;

    for (int line = 0; line < UNIT * i->rows; line += 64)
        __builtin_prefetch(at + line, 0, 3);
    NEXT;
}

/* ---- operations ------------------------------------------------------------------------------ */

#define ONE(name, VALUE)                                                                          \
    LANE vector one_##name(vector x) { return VALUE; }                                            \
    INSTRUCTION(code_##name)                                                                      \
    {                                                                                             \
        a0 = one_##name(a0), a1 = one_##name(a1), a2 = one_##name(a2), a3 = one_##name(a3);       \
        a4 = one_##name(a4), a5 = one_##name(a5), a6 = one_##name(a6), a7 = one_##name(a7);       \
        NEXT;                                                                                     \
    }

#define TWO(name, VALUE)                                                                          \
    LANE vector two_##name(vector x, vector y) { return VALUE; }                                  \
    INSTRUCTION(code_##name)                                                                      \
    {                                                                                             \
        FLOATS(0)                                                                                 \
        a0 = two_##name(a0, m0[0]), a1 = two_##name(a1, m0[1]);                                   \
        a2 = two_##name(a2, m0[2]), a3 = two_##name(a3, m0[3]);                                   \
        a4 = two_##name(a4, m0[4]), a5 = two_##name(a5, m0[5]);                                   \
        a6 = two_##name(a6, m0[6]), a7 = two_##name(a7, m0[7]);                                   \
        NEXT;                                                                                     \
    }

#define TWO_EVEN(name)                                                                            \
    INSTRUCTION(code_##name##_even)                                                               \
    {                                                                                             \
        FLOATS(0)                                                                                 \
        const vector q = m0[0];                                                                   \
        a0 = two_##name(a0, q), a1 = two_##name(a1, q), a2 = two_##name(a2, q);                   \
        a3 = two_##name(a3, q), a4 = two_##name(a4, q), a5 = two_##name(a5, q);                   \
        a6 = two_##name(a6, q), a7 = two_##name(a7, q);                                           \
        NEXT;                                                                                     \
    }

#define TWO_BF16(name)                                                                            \
    INSTRUCTION(code_##name##_bf16)                                                               \
    {                                                                                             \
        const uint16_t *m = map_at(u, &i->at[0]);                                                 \
        vector x, y;                                                                              \
        vector_from_bf16(m, &x, &y);                                                              \
        a0 = two_##name(a0, x), a1 = two_##name(a1, y);                                           \
        vector_from_bf16(m + 2 * VECTOR_LANES, &x, &y);                                           \
        a2 = two_##name(a2, x), a3 = two_##name(a3, y);                                           \
        vector_from_bf16(m + 4 * VECTOR_LANES, &x, &y);                                           \
        a4 = two_##name(a4, x), a5 = two_##name(a5, y);                                           \
        vector_from_bf16(m + 6 * VECTOR_LANES, &x, &y);                                           \
        a6 = two_##name(a6, x), a7 = two_##name(a7, y);                                           \
        NEXT;                                                                                     \
    }

#define PICK(name)                                                                                \
    INSTRUCTION(code_pick_##name)                                                                 \
    {                                                                                             \
        FLOATS(0) FLOATS(1) FLOATS(2)                                                             \
        EACH(DO_PICK_##name)                                                                      \
        NEXT;                                                                                     \
    }                                                                                             \
    INSTRUCTION(code_pick_##name##_r)                                                             \
    {                                                                                             \
        FLOATS(0) FLOATS(1) FLOATS(2)                                                             \
        EACH(DO_PICK_R_##name)                                                                    \
        NEXT;                                                                                     \
    }

#define PICK_ALL(name, sign)                                                                      \
    INSTRUCTION(code_pick_all_##name)                                                             \
    {                                                                                             \
        FLOATS(0) FLOATS(1) FLOATS(2)                                                             \
        if (m0[0][0] sign m1[0][0]) {                                                             \
            EACH(DO_TAKE)                                                                         \
        }                                                                                         \
        NEXT;                                                                                     \
    }                                                                                             \
    INSTRUCTION(code_pick_all_##name##_r)                                                         \
    {                                                                                             \
        FLOATS(0) FLOATS(1) FLOATS(2)                                                             \
        if (!(m0[0][0] sign m1[0][0])) {                                                          \
            EACH(DO_TAKE)                                                                         \
        }                                                                                         \
        NEXT;                                                                                     \
    }
#define DO_TAKE(k) a##k = m2[k];

ONE(neg, vector_neg(x))
ONE(abs, vector_abs(x))
ONE(sqrt, vector_sqrt(x))
ONE(not, vector_test_equal(x, vector_all(0)))
TWO(add, x + y)
TWO(mul, x * y)
TWO(sub, x - y)
TWO(sub_r, y - x)
TWO(div, x / y)
TWO(div_r, y / x)
TWO(min, vector_min(x, y))
TWO(min_r, vector_min(y, x))
TWO(max, vector_max(x, y))
TWO(max_r, vector_max(y, x))
TWO(join_max, vector_join_max(x, y))
TWO(join_max_r, vector_join_max(y, x))
TWO(join_min, vector_join_min(x, y))
TWO(join_min_r, vector_join_min(y, x))
TWO(equal, vector_test_equal(x, y))
TWO(not_equal, vector_test_not_equal(x, y))
TWO(greater, vector_test_greater(x, y))
TWO(greater_equal, vector_test_greater_equal(x, y))
TWO(less, vector_test_greater(y, x))
TWO(less_equal, vector_test_greater_equal(y, x))
TWO_EVEN(add)
TWO_EVEN(mul)
TWO_EVEN(sub)
TWO_EVEN(sub_r)
TWO_EVEN(div)
TWO_EVEN(div_r)
TWO_BF16(add)
TWO_BF16(mul)
TWO_BF16(sub)
TWO_BF16(sub_r)

#define DO_PICK_equal(k) a##k = vector_pick_equal(m0[k], m1[k], m2[k], a##k);
#define DO_PICK_R_equal(k) a##k = vector_pick_equal(m0[k], m1[k], a##k, m2[k]);
#define DO_PICK_not_equal(k) a##k = vector_pick_not_equal(m0[k], m1[k], m2[k], a##k);
#define DO_PICK_R_not_equal(k) a##k = vector_pick_not_equal(m0[k], m1[k], a##k, m2[k]);
#define DO_PICK_greater(k) a##k = vector_pick_greater(m0[k], m1[k], m2[k], a##k);
#define DO_PICK_R_greater(k) a##k = vector_pick_greater(m0[k], m1[k], a##k, m2[k]);
#define DO_PICK_greater_equal(k) a##k = vector_pick_greater_equal(m0[k], m1[k], m2[k], a##k);
#define DO_PICK_R_greater_equal(k) a##k = vector_pick_greater_equal(m0[k], m1[k], a##k, m2[k]);
PICK(equal)
PICK(not_equal)
PICK(greater)
PICK(greater_equal)
PICK_ALL(equal, ==)
PICK_ALL(not_equal, !=)
PICK_ALL(greater, >)
PICK_ALL(greater_equal, >=)

/* The commonest choices: by numbers that are the same in all vectors. */
#define ABOVE(name, DO)                                                                           \
    INSTRUCTION(code_##name)                                                                      \
    {                                                                                             \
        FLOATS(0) FLOATS(1) FLOATS(2)                                                             \
        const vector q = m1[0], z = m2[0];                                                        \
        (void)z;                                                                                  \
        EACH(DO)                                                                                  \
        NEXT;                                                                                     \
    }
#define DO_ABOVE(k) a##k = vector_pick_greater(m0[k], q, m2[k], a##k);
#define DO_ABOVE_R(k) a##k = vector_pick_greater(m0[k], q, a##k, m2[k]);
#define DO_ABOVE_ONE(k) a##k = vector_pick_greater(m0[k], q, z, a##k);
#define DO_ABOVE_ONE_R(k) a##k = vector_pick_greater(m0[k], q, a##k, z);
ABOVE(above, DO_ABOVE)
ABOVE(above_r, DO_ABOVE_R)
ABOVE(above_one, DO_ABOVE_ONE)
ABOVE(above_one_r, DO_ABOVE_ONE_R)

INSTRUCTION(code_bend)
{
    const vector q = *(const vector_loose *)map_at(u, &i->at[0]);
    const vector slope = *(const vector_loose *)map_at(u, &i->at[1]);
#define DO(k) a##k = vector_pick_greater(a##k, q, a##k, a##k * slope);
    EACH(DO)
#undef DO
    NEXT;
}

INSTRUCTION(code_bend_by)
{
    FLOATS(2)
    const vector q = *(const vector_loose *)map_at(u, &i->at[0]);
    const vector slope = *(const vector_loose *)map_at(u, &i->at[1]);
#define DO(k) a##k = vector_pick_greater(m2[k], q, a##k, a##k * slope);
    EACH(DO)
#undef DO
    NEXT;
}

LANE vector bend_gradient(vector x, vector q, vector g, vector m)
{
    vector below = vector_pick_greater(x, q, q, g) * m;

    return vector_pick_greater(x, q, g, q) + below;
}

INSTRUCTION(code_bend_gradient)
{
    FLOATS(0) FLOATS(1) FLOATS(2)
#define DO(k) a##k = bend_gradient(m0[k], m1[k], a##k, m2[k]);
    EACH(DO)
#undef DO
    NEXT;
}

INSTRUCTION(code_bend_gradient_even)
{
    FLOATS(0) FLOATS(1) FLOATS(2)
    const vector q = m1[0], m = m2[0];
#define DO(k) a##k = bend_gradient(m0[k], q, a##k, m);
    EACH(DO)
#undef DO
    NEXT;
}

/* ---- reductions ------------------------------------------------------------------------------ */

#define REDUCE(name, VALUE)                                                                       \
    LANE vector reduce_##name(vector x, vector y) { return VALUE; }                               \
    PART part_##name(const map_instruction *i, map_unit *u, REGISTERS)                            \
    {                                                                                             \
        vector a[8] = { a0, a1, a2, a3, a4, a5, a6, a7 };                                         \
        float *m = map_at(u, &i->at[0]), *x = (float *)a;                                         \
        for (int k = 0; k < u->lanes; k++)                                                        \
            m[k] = reduce_##name(vector_all(m[k]), vector_all(x[k]))[0];                           \
        NEXT;                                                                                     \
    }                                                                                             \
    INSTRUCTION(code_##name)                                                                      \
    {                                                                                             \
        vector_loose *m = map_at(u, &i->at[0]);                                                  \
        if (__builtin_expect(u->lanes != UNIT, 0)) {                                              \
            part_##name(i, u, a0, a1, a2, a3, a4, a5, a6, a7);                                    \
            return;                                                                               \
        }                                                                                         \
        EACH(DO_##name)                                                                           \
        NEXT;                                                                                     \
    }
#define DO_sum(k) m[k] = m[k] + a##k;
#define DO_maximum(k) m[k] = vector_join_max(m[k], a##k);
#define DO_minimum(k) m[k] = vector_join_min(m[k], a##k);
REDUCE(sum, x + y)
REDUCE(maximum, vector_join_max(x, y))
REDUCE(minimum, vector_join_min(x, y))

/* Welford, lane by lane; products and sums are one operation where the processor has it. */
LANE void moments_vector(vector *mean, vector *square, vector x, vector reciprocal)
{
    vector d = x - *mean, m = vector_fused(d, reciprocal, *mean);

    *square = vector_fused(d, x - m, *square);
    *mean = m;
}

LANE vector moments_reciprocal(const map_instruction *i, const map_unit *u)
{
    return vector_all(1.0f / (float)u->numbers[i->at[0].walk == MAP_MOMENTS_LANES]);
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

INSTRUCTION(code_moments)
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
 * Of what is loaded, with means and squares in registers for all whole periods of a tile, some
 * vectors of a period at a time.
 */
enum { TOGETHER = VECTOR_LANES == 16 ? 8 : 4 };

/* What is added: nothing, a number of each lane, an even one. */
typedef enum plus { PLUS_NOTHING, PLUS_LANES, PLUS_EVEN } plus;

/* Vectors k and, if there is one, k + 1 behind 'from', of bf16 or floats. */
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

/* Where periods are, their means and squares, how many numbers these hold with the first one. */
typedef struct moments_at {
    const char *from;
    const float *added;
    float *mean, *square;
    int period, number;
} moments_at;

/* 'count' vectors of each period, from 'first' on. */
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
        if (half) /* floats come by themselves, and quicker */
            ask(from, count * VECTOR_LANES * size);
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
    u->cycle_lane = -UNIT; /* a period is whole cycles */
}

/* All vectors of 'periods' periods, some and nearly as many at a time. */
LANE void moments_cycles(const moments_at *at, bool half, plus plus, int vectors, int periods)
{
    int parts = (vectors + TOGETHER - 1) / TOGETHER;

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

/* Lanes behind the last whole vector. */
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

/* Of a tile, whose first unit this is; a rest behind whole cycles has accumulators of its own. */
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
        code_moments(i, u, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);                       \
    }                                                                                             \
    PART whole_moments_##name(const map_instruction *i, map_unit *u)                              \
    {                                                                                             \
        if (u->lane == 0)                                                                         \
            moments_tile(i, u, half, plus);                                                       \
        if (i->rows == 2)                                                                         \
            u->lane = u->points - UNIT;                                                           \
        ((instruction)i[1].run)(i + 1, u, NOTHING);                                               \
    }                                                                                             \
    INSTRUCTION(code_moments_##name)                                                              \
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

/* ---- calls ----------------------------------------------------------------------------------- */

INSTRUCTION(code_call)
{
    FLOATS(0)
    i->call.function((float *)map_at(u, &i->at[0]), map_at(u, &i->at[1]), map_at(u, &i->at[2]),
                     map_at(u, &i->at[3]), UNIT);
#define DO(k) a##k = m0[k];
    EACH(DO)
#undef DO
    NEXT;
}

INSTRUCTION(code_visit)
{
    VECTOR_LEAVE();
    i->call.visit(u, i);
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = vector_all(0);
    NEXT;
}

static inline void walk(map_unit *u)
{
    u->lane += UNIT;
    u->cycle_lane += UNIT;
    if (u->cycle_lane >= u->cycle && u->lane % MAP_STRIP == 0)
        u->cycle_lane -= u->cycle;
    u->period_lane += UNIT;
    if (u->period_lane == u->period) {
        u->periods++;
        map_unit_begin_period(u);
    }
}

static void begin(const map_instruction *first, map_unit *unit)
{
    vector z = { 0 };

    do {
        map_unit_place(unit);
        ((instruction)first->run)(first, unit, z, z, z, z, z, z, z, z);
        walk(unit);
    } while (unit->lane < unit->last);
    VECTOR_LEAVE();
}

static void finish(void) { VECTOR_FENCE(); }

#if defined(__AVX__)
static void past(void *to, const void *from, size_t lines)
{
    const size_t vectors = lines * (MAP_LINE / sizeof(vector));

    for (size_t k = 0; k < vectors; k++)
        vector_stream((float *)to + k * VECTOR_LANES,
                      vector_load((const float *)from + k * VECTOR_LANES));
    VECTOR_LEAVE();
}
#endif

#define CODE(KIND, name) [MAP_CODE_##KIND] = (void (*)(void))code_##name

const map_machine CPU_ROW_NAME(map_machine) = {
    .unit = UNIT,
    .vector = VECTOR_LANES,
#if defined(__AVX512BF16__)
    .compiles = MAP_COMPILES_BF16,
#elif defined(__AVX512F__)
    .compiles = MAP_COMPILES,
#endif
    .begin = begin,
    .finish = finish,
#if defined(__AVX__)
    .past = past,
#endif
    .code = {
        CODE(END, end), CODE(LOAD_F32, load_f32), CODE(LOAD_BF16, load_bf16),
        CODE(LOAD_EVEN, load_even), CODE(LOAD_U8, load_u8),
        CODE(PAIR_FIRST_F32, pair_first_f32), CODE(PAIR_SECOND_F32, pair_second_f32),
        CODE(PAIR_FIRST_BF16, pair_first_bf16), CODE(PAIR_SECOND_BF16, pair_second_bf16),
        CODE(KEEP, keep),
        CODE(STORE_F32, keep), CODE(STORE_BF16, store_bf16), CODE(STREAM_F32, stream_f32),
        CODE(STREAM_BF16, stream_bf16), CODE(FETCH_32, fetch_32), CODE(FETCH_16, fetch_16),
        CODE(FETCH_8, fetch_8), CODE(FETCH_GROUPS, fetch_groups),
        CODE(FETCH_INTERLEAVED, fetch_interleaved),
        CODE(GROUPS_F32, groups_f32), CODE(GROUPS_BF16, groups_bf16),
        CODE(STORE_GROUPS_F32, store_groups_f32), CODE(STORE_GROUPS_BF16, store_groups_bf16),
        CODE(NEG, neg), CODE(ABS, abs), CODE(SQRT, sqrt),
        CODE(NOT, not), CODE(ADD, add), CODE(MUL, mul), CODE(SUB, sub), CODE(SUB_R, sub_r),
        CODE(DIV, div), CODE(DIV_R, div_r), CODE(MIN, min), CODE(MIN_R, min_r), CODE(MAX, max),
        CODE(MAX_R, max_r), CODE(JOIN_MAX, join_max), CODE(JOIN_MAX_R, join_max_r),
        CODE(JOIN_MIN, join_min), CODE(JOIN_MIN_R, join_min_r), CODE(EQUAL, equal),
        CODE(NOT_EQUAL, not_equal), CODE(GREATER, greater), CODE(GREATER_EQUAL, greater_equal),
        CODE(LESS, less), CODE(LESS_EQUAL, less_equal), CODE(ADD_BF16, add_bf16),
        CODE(MUL_BF16, mul_bf16), CODE(SUB_BF16, sub_bf16), CODE(SUB_R_BF16, sub_r_bf16),
        CODE(PICK_EQUAL, pick_equal), CODE(PICK_EQUAL_R, pick_equal_r),
        CODE(PICK_NOT_EQUAL, pick_not_equal), CODE(PICK_NOT_EQUAL_R, pick_not_equal_r),
        CODE(PICK_GREATER, pick_greater), CODE(PICK_GREATER_R, pick_greater_r),
        CODE(PICK_GREATER_EQUAL, pick_greater_equal),
        CODE(PICK_GREATER_EQUAL_R, pick_greater_equal_r), CODE(ABOVE, above),
        CODE(ABOVE_R, above_r), CODE(ABOVE_ONE, above_one), CODE(ABOVE_ONE_R, above_one_r),
        CODE(PICK_ALL_EQUAL, pick_all_equal), CODE(PICK_ALL_EQUAL_R, pick_all_equal_r),
        CODE(PICK_ALL_NOT_EQUAL, pick_all_not_equal),
        CODE(PICK_ALL_NOT_EQUAL_R, pick_all_not_equal_r),
        CODE(PICK_ALL_GREATER, pick_all_greater), CODE(PICK_ALL_GREATER_R, pick_all_greater_r),
        CODE(PICK_ALL_GREATER_EQUAL, pick_all_greater_equal),
        CODE(PICK_ALL_GREATER_EQUAL_R, pick_all_greater_equal_r),
        CODE(ADD_EVEN, add_even), CODE(MUL_EVEN, mul_even), CODE(SUB_EVEN, sub_even),
        CODE(SUB_R_EVEN, sub_r_even), CODE(DIV_EVEN, div_even), CODE(DIV_R_EVEN, div_r_even),
        CODE(BEND_GRADIENT, bend_gradient), CODE(BEND_GRADIENT_EVEN, bend_gradient_even),
        CODE(BEND, bend), CODE(BEND_BY, bend_by), CODE(SUM, sum),
        CODE(MAXIMUM, maximum), CODE(MINIMUM, minimum), CODE(MOMENTS, moments),
        CODE(MOMENTS_F32, moments_f32), CODE(MOMENTS_F32_PLUS, moments_f32_plus),
        CODE(MOMENTS_F32_PLUS_EVEN, moments_f32_plus_even), CODE(MOMENTS_BF16, moments_bf16),
        CODE(MOMENTS_BF16_PLUS, moments_bf16_plus),
        CODE(MOMENTS_BF16_PLUS_EVEN, moments_bf16_plus_even), CODE(CALL, call),
        CODE(VISIT, visit),
    },
};
