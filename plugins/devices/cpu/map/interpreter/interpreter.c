/*
 * interpreter.c - the machine of interpreter.h: operations, sums, calls, the loop over units, and
 * the table of all instructions. It is compiled once for each instruction set.
 */
#include "cpu/map/interpreter/interpreter_instruction.h"

INSTRUCTION(code_end)
{
    (void)i, (void)u, (void)a0, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6;
    (void)a7;
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

#define SELECT(name)                                                                              \
    INSTRUCTION(code_select_##name)                                                               \
    {                                                                                             \
        FLOATS(0) FLOATS(1) FLOATS(2)                                                             \
        EACH(DO_SELECT_##name)                                                                    \
        NEXT;                                                                                     \
    }                                                                                             \
    INSTRUCTION(code_select_##name##_r)                                                           \
    {                                                                                             \
        FLOATS(0) FLOATS(1) FLOATS(2)                                                             \
        EACH(DO_SELECT_R_##name)                                                                  \
        NEXT;                                                                                     \
    }

#define SELECT_ALL(name, sign)                                                                    \
    INSTRUCTION(code_select_all_##name)                                                           \
    {                                                                                             \
        FLOATS(0) FLOATS(1) FLOATS(2)                                                             \
        if (m0[0][0] sign m1[0][0]) {                                                             \
            EACH(DO_TAKE)                                                                         \
        }                                                                                         \
        NEXT;                                                                                     \
    }                                                                                             \
    INSTRUCTION(code_select_all_##name##_r)                                                       \
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
TWO(max_nan, vector_max_nan(x, y))
TWO(max_nan_r, vector_max_nan(y, x))
TWO(min_nan, vector_min_nan(x, y))
TWO(min_nan_r, vector_min_nan(y, x))
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

#define DO_SELECT_equal(k) a##k = vector_select_equal(m0[k], m1[k], m2[k], a##k);
#define DO_SELECT_R_equal(k) a##k = vector_select_equal(m0[k], m1[k], a##k, m2[k]);
#define DO_SELECT_not_equal(k) a##k = vector_select_not_equal(m0[k], m1[k], m2[k], a##k);
#define DO_SELECT_R_not_equal(k) a##k = vector_select_not_equal(m0[k], m1[k], a##k, m2[k]);
#define DO_SELECT_greater(k) a##k = vector_select_greater(m0[k], m1[k], m2[k], a##k);
#define DO_SELECT_R_greater(k) a##k = vector_select_greater(m0[k], m1[k], a##k, m2[k]);
#define DO_SELECT_greater_equal(k) a##k = vector_select_greater_equal(m0[k], m1[k], m2[k], a##k);
#define DO_SELECT_R_greater_equal(k) a##k = vector_select_greater_equal(m0[k], m1[k], a##k, m2[k]);
SELECT(equal)
SELECT(not_equal)
SELECT(greater)
SELECT(greater_equal)
SELECT_ALL(equal, ==)
SELECT_ALL(not_equal, !=)
SELECT_ALL(greater, >)
SELECT_ALL(greater_equal, >=)

/* The most common selects: by operands that are the same in all vectors. */
#define SELECT_GT(name, DO)                                                                       \
    INSTRUCTION(code_##name)                                                                      \
    {                                                                                             \
        FLOATS(0) FLOATS(1) FLOATS(2)                                                             \
        const vector q = m1[0], z = m2[0];                                                        \
        (void)z;                                                                                  \
        EACH(DO)                                                                                  \
        NEXT;                                                                                     \
    }
#define DO_SELECT_GT(k) a##k = vector_select_greater(m0[k], q, m2[k], a##k);
#define DO_SELECT_GT_R(k) a##k = vector_select_greater(m0[k], q, a##k, m2[k]);
#define DO_SELECT_GT_ONE(k) a##k = vector_select_greater(m0[k], q, z, a##k);
#define DO_SELECT_GT_ONE_R(k) a##k = vector_select_greater(m0[k], q, a##k, z);
SELECT_GT(select_gt, DO_SELECT_GT)
SELECT_GT(select_gt_r, DO_SELECT_GT_R)
SELECT_GT(select_gt_one, DO_SELECT_GT_ONE)
SELECT_GT(select_gt_one_r, DO_SELECT_GT_ONE_R)

INSTRUCTION(code_leaky_relu)
{
    const vector q = *(const vector_loose *)map_at(u, &i->at[0]);
    const vector slope = *(const vector_loose *)map_at(u, &i->at[1]);
#define DO(k) a##k = vector_select_greater(a##k, q, a##k, a##k * slope);
    EACH(DO)
#undef DO
    NEXT;
}

INSTRUCTION(code_leaky_relu_by)
{
    FLOATS(2)
    const vector q = *(const vector_loose *)map_at(u, &i->at[0]);
    const vector slope = *(const vector_loose *)map_at(u, &i->at[1]);
#define DO(k) a##k = vector_select_greater(m2[k], q, a##k, a##k * slope);
    EACH(DO)
#undef DO
    NEXT;
}

LANE vector leaky_relu_gradient(vector x, vector q, vector g, vector m)
{
    vector below = vector_select_greater(x, q, q, g) * m;

    return vector_select_greater(x, q, g, q) + below;
}

INSTRUCTION(code_leaky_relu_gradient)
{
    FLOATS(0) FLOATS(1) FLOATS(2)
#define DO(k) a##k = leaky_relu_gradient(m0[k], m1[k], a##k, m2[k]);
    EACH(DO)
#undef DO
    NEXT;
}

INSTRUCTION(code_leaky_relu_gradient_even)
{
    FLOATS(0) FLOATS(1) FLOATS(2)
    const vector q = m1[0], m = m2[0];
#define DO(k) a##k = leaky_relu_gradient(m0[k], q, a##k, m);
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
#define DO_maximum(k) m[k] = vector_max_nan(m[k], a##k);
#define DO_minimum(k) m[k] = vector_min_nan(m[k], a##k);
REDUCE(sum, x + y)
REDUCE(maximum, vector_max_nan(x, y))
REDUCE(minimum, vector_min_nan(x, y))

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

static inline void next_unit(map_unit *u)
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
        map_unit_offsets(unit);
        ((instruction)first->run)(first, unit, z, z, z, z, z, z, z, z);
        next_unit(unit);
    } while (unit->lane < unit->last);
    VECTOR_LEAVE();
}

static void finish(void) { VECTOR_FENCE(); }

#if defined(__AVX__)
static void non_temporal(void *to, const void *from, size_t lines)
{
    const size_t vectors = lines * (MAP_LINE / sizeof(vector));

    for (size_t k = 0; k < vectors; k++)
        vector_stream((float *)to + k * VECTOR_LANES,
                      vector_load((const float *)from + k * VECTOR_LANES));
    VECTOR_LEAVE();
}
#endif

#define CODE(KIND, name) [MAP_CODE_##KIND] = (void (*)(void))code_##name
/* An instruction of another file. */
#define CODE_OF(KIND, name) [MAP_CODE_##KIND] = (void (*)(void))CPU_ISA_NAME(code_##name)

const map_machine CPU_ISA_NAME(map_machine) = {
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
    .non_temporal = non_temporal,
#endif
    .code = {
        CODE(END, end), CODE_OF(LOAD_F32, load_f32), CODE_OF(LOAD_BF16, load_bf16),
        CODE_OF(LOAD_EVEN, load_even), CODE_OF(LOAD_U8, load_u8),
        CODE_OF(PAIR_FIRST_F32, pair_first_f32), CODE_OF(PAIR_SECOND_F32, pair_second_f32),
        CODE_OF(PAIR_FIRST_BF16, pair_first_bf16), CODE_OF(PAIR_SECOND_BF16, pair_second_bf16),
        CODE_OF(KEEP, keep),
        CODE_OF(STORE_F32, keep), CODE_OF(STORE_BF16, store_bf16), CODE_OF(STREAM_F32, stream_f32),
        CODE_OF(STREAM_BF16, stream_bf16), CODE_OF(FETCH_32, fetch_32), CODE_OF(FETCH_16, fetch_16),
        CODE_OF(FETCH_8, fetch_8), CODE_OF(FETCH_GROUPS, fetch_groups),
        CODE_OF(FETCH_INTERLEAVED, fetch_interleaved),
        CODE_OF(GROUPS_F32, groups_f32), CODE_OF(GROUPS_BF16, groups_bf16),
        CODE_OF(STORE_GROUPS_F32, store_groups_f32), CODE_OF(STORE_GROUPS_BF16, store_groups_bf16),
        CODE(NEG, neg), CODE(ABS, abs), CODE(SQRT, sqrt),
        CODE(NOT, not), CODE(ADD, add), CODE(MUL, mul), CODE(SUB, sub), CODE(SUB_R, sub_r),
        CODE(DIV, div), CODE(DIV_R, div_r), CODE(MIN, min), CODE(MIN_R, min_r), CODE(MAX, max),
        CODE(MAX_R, max_r), CODE(MAX_NAN, max_nan), CODE(MAX_NAN_R, max_nan_r),
        CODE(MIN_NAN, min_nan), CODE(MIN_NAN_R, min_nan_r), CODE(EQUAL, equal),
        CODE(NOT_EQUAL, not_equal), CODE(GREATER, greater), CODE(GREATER_EQUAL, greater_equal),
        CODE(LESS, less), CODE(LESS_EQUAL, less_equal), CODE(ADD_BF16, add_bf16),
        CODE(MUL_BF16, mul_bf16), CODE(SUB_BF16, sub_bf16), CODE(SUB_R_BF16, sub_r_bf16),
        CODE(SELECT_EQUAL, select_equal), CODE(SELECT_EQUAL_R, select_equal_r),
        CODE(SELECT_NOT_EQUAL, select_not_equal), CODE(SELECT_NOT_EQUAL_R, select_not_equal_r),
        CODE(SELECT_GREATER, select_greater), CODE(SELECT_GREATER_R, select_greater_r),
        CODE(SELECT_GREATER_EQUAL, select_greater_equal),
        CODE(SELECT_GREATER_EQUAL_R, select_greater_equal_r), CODE(SELECT_GT, select_gt),
        CODE(SELECT_GT_R, select_gt_r), CODE(SELECT_GT_ONE, select_gt_one), CODE(SELECT_GT_ONE_R,
                                                                                 select_gt_one_r),
        CODE(SELECT_ALL_EQUAL, select_all_equal), CODE(SELECT_ALL_EQUAL_R, select_all_equal_r),
        CODE(SELECT_ALL_NOT_EQUAL, select_all_not_equal),
        CODE(SELECT_ALL_NOT_EQUAL_R, select_all_not_equal_r),
        CODE(SELECT_ALL_GREATER, select_all_greater), CODE(SELECT_ALL_GREATER_R,
                                                           select_all_greater_r),
        CODE(SELECT_ALL_GREATER_EQUAL, select_all_greater_equal),
        CODE(SELECT_ALL_GREATER_EQUAL_R, select_all_greater_equal_r),
        CODE(ADD_EVEN, add_even), CODE(MUL_EVEN, mul_even), CODE(SUB_EVEN, sub_even),
        CODE(SUB_R_EVEN, sub_r_even), CODE(DIV_EVEN, div_even), CODE(DIV_R_EVEN, div_r_even),
        CODE(LEAKY_RELU_GRADIENT, leaky_relu_gradient), CODE(LEAKY_RELU_GRADIENT_EVEN,
                                                             leaky_relu_gradient_even),
        CODE(LEAKY_RELU, leaky_relu), CODE(LEAKY_RELU_BY, leaky_relu_by), CODE(SUM, sum),
        CODE(MAXIMUM, maximum), CODE(MINIMUM, minimum), CODE_OF(MOMENTS, moments),
        CODE_OF(MOMENTS_F32, moments_f32), CODE_OF(MOMENTS_F32_PLUS, moments_f32_plus),
        CODE_OF(MOMENTS_F32_PLUS_EVEN, moments_f32_plus_even), CODE_OF(MOMENTS_BF16, moments_bf16),
        CODE_OF(MOMENTS_BF16_PLUS, moments_bf16_plus),
        CODE_OF(MOMENTS_BF16_PLUS_EVEN, moments_bf16_plus_even), CODE(CALL, call),
        CODE(VISIT, visit),
    },
};
