/*
 * interpreter_memory.c - the machine's instructions that load, store and prefetch. They are
 * compiled once for each instruction set.
 */
#include "cpu/map/interpreter/interpreter_instruction.h"

SHARED(code_load_f32)
{
    FLOATS(0)
#define DO(k) a##k = m0[k];
    EACH(DO)
#undef DO
    NEXT;
}

SHARED(code_load_even)
{
    FLOATS(0)
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = m0[0];
    NEXT;
}

SHARED(code_load_bf16)
{
    const uint16_t *m = map_at(u, &i->at[0]);

    vector_from_bf16(m, &a0, &a1);
    vector_from_bf16(m + 2 * VECTOR_LANES, &a2, &a3);
    vector_from_bf16(m + 4 * VECTOR_LANES, &a4, &a5);
    vector_from_bf16(m + 6 * VECTOR_LANES, &a6, &a7);
    NEXT;
}

SHARED(code_load_u8)
{
    const uint8_t *m = map_at(u, &i->at[0]);
#define DO(k) a##k = vector_from_u8(m + k * VECTOR_LANES);
    EACH(DO)
#undef DO
    NEXT;
}

/* One of two interleaved channels. Units with missing lanes go lane by lane. */
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
    SHARED(code_pair_##name)                                                                      \
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
PAIR(first_f32, float, vector_deinterleave_f32, same, 0)
PAIR(second_f32, float, vector_deinterleave_f32, same, 1)
PAIR(first_bf16, uint16_t, vector_deinterleave_bf16, lane_from_bf16, 0)
PAIR(second_bf16, uint16_t, vector_deinterleave_bf16, lane_from_bf16, 1)

SHARED(code_keep)
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
/* Store the accumulator as bf16 by TO, two vectors at a time. */
#define EACH_BF16(TO, how)                                                                        \
    TO(m, vector_bf16_##how(a0, a1));                                                             \
    TO(m + 2 * VECTOR_LANES, vector_bf16_##how(a2, a3));                                          \
    TO(m + 4 * VECTOR_LANES, vector_bf16_##how(a4, a5));                                          \
    TO(m + 6 * VECTOR_LANES, vector_bf16_##how(a6, a7));

PART part_store_bf16(const map_instruction *i, map_unit *u, REGISTERS)
{
    uint16_t *m = map_at(u, &i->at[0]);

    EACH_BF16(vector_store_bf16, of)
    NEXT;
}

SHARED(code_store_bf16)
{
    uint16_t *m = map_at(u, &i->at[0]);

    if (NEEDS_CARE) {
        part_store_bf16(i, u, a0, a1, a2, a3, a4, a5, a6, a7);
        return;
    }
    EACH_BF16(vector_store_bf16, quick)
    NEXT;
}

/* Non-temporal stores need whole, aligned cache lines. */
LANE bool is_line(const void *m) { return (uintptr_t)m % MAP_LINE == 0; }

SHARED(code_stream_f32)
{
    float *m = map_at(u, &i->at[0]);

    if (!is_line(m)) {
        CPU_ISA_NAME(code_keep)(i, u, a0, a1, a2, a3, a4, a5, a6, a7);
        return;
    }
#define DO(k) vector_stream(m + k * VECTOR_LANES, a##k);
    EACH(DO)
#undef DO
    NEXT;
}

SHARED(code_stream_bf16)
{
    uint16_t *m = map_at(u, &i->at[0]);

    if (NEEDS_CARE || !is_line(m)) {
        part_store_bf16(i, u, a0, a1, a2, a3, a4, a5, a6, a7);
        return;
    }
    EACH_BF16(vector_stream_bf16, quick)
    NEXT;
}

/*
 * Groups of MAP_ROW lanes, each one or several vectors. Units with missing lanes go lane by lane.
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
    SHARED(code_groups_##name)                                                                    \
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
    SHARED(code_store_groups_##name)                                                              \
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

SHARED(code_fetch_32)
{
    prefetch_lines(map_at(u, &i->at[0]), 4 * UNIT);
    NEXT;
}

SHARED(code_fetch_16)
{
    prefetch_lines(map_at(u, &i->at[0]), 2 * UNIT);
    NEXT;
}

SHARED(code_fetch_8)
{
    prefetch_lines(map_at(u, &i->at[0]), UNIT);
    NEXT;
}

/* The next tile is usually the next range of the cut axis. */
SHARED(code_fetch_groups)
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

SHARED(code_fetch_interleaved)
{
    const char *at = (const char *)map_at(u, &i->at[0]) + (int64_t)u->lane * i->rows + MAP_AHEAD;

    for (int line = 0; line < UNIT * i->rows; line += 64)
        __builtin_prefetch(at + line, 0, 3);
    NEXT;
}
