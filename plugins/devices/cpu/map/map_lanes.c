/*
 * map_lanes.c - loops over the lanes of a tile, compiled once for each instruction set, which
 * CPU_ISA names. lane_math.h defines the operations.
 */
#include "cpu/simd/lane_math.h"
#include "cpu/map/map_internal.h"
#include "cpu/map/map_lanes.h"
#include "cpu/simd/shuffle.h"

/* Iterations are independent: r may be equal to an argument but never overlaps one partly. */
#define EACH_POINT _Pragma("GCC ivdep") for (int i = 0; i < points; i++)
#define EACH_LANE _Pragma("GCC ivdep") for (int i = 0; i < n; i++)
#define WHOLE_ROWS (n &= -MAP_ROW)

/* ---- operations ------------------------------------------------------------------------------ */

#define ONE(NAME, VALUE)                                                                          \
    static void lanes_##NAME(float *r, const float *a, const float *b, const float *c, int n)     \
    {                                                                                             \
        WHOLE_ROWS;                                                                               \
        EACH_LANE {                                                                               \
            float x = a[i];                                                                       \
            r[i] = VALUE;                                                                         \
        }                                                                                         \
    }

#define TWO(NAME, VALUE)                                                                          \
    static void lanes_##NAME(float *r, const float *a, const float *b, const float *c, int n)     \
    {                                                                                             \
        WHOLE_ROWS;                                                                               \
        EACH_LANE {                                                                               \
            float x = a[i], y = b[i];                                                             \
            r[i] = VALUE;                                                                         \
        }                                                                                         \
    }

static void lanes_select(float *r, const float *a, const float *b, const float *c, int n)
{
    WHOLE_ROWS;
    EACH_LANE
        r[i] = lane_select(a[i] != 0, b[i], c[i]);
}

ONE(neg, -x)
ONE(abs, lane_abs(x))
ONE(sign, lane_sign(x))
ONE(floor, lane_floor(x))
ONE(round, lane_round(x))
ONE(sqrt, __builtin_sqrtf(x))
ONE(exp, lane_exp(x))
ONE(expm1, lane_expm1(x))
ONE(log, lane_log(x))
ONE(log1p, lane_log1p(x))
ONE(tanh, lane_tanh(x))
ONE(erf, lane_erf(x))
ONE(isfinite, lane_isfinite(x))
ONE(not, x == 0 ? 1.0f : 0.0f)
ONE(copy, x)
ONE(sin_near, lane_sin(x))
ONE(cos_near, lane_cos(x))
TWO(add, x + y)
TWO(sub, x - y)
TWO(mul, x * y)
TWO(div, x / y)
TWO(min, x < y ? x : y)
TWO(max, x > y ? x : y)
TWO(pow, lane_pow(x, y))
TWO(equal, x == y ? 1.0f : 0.0f)
TWO(not_equal, x != y ? 1.0f : 0.0f)
TWO(less, x < y ? 1.0f : 0.0f)
TWO(less_equal, x <= y ? 1.0f : 0.0f)
TWO(greater, x > y ? 1.0f : 0.0f)
TWO(greater_equal, x >= y ? 1.0f : 0.0f)
TWO(and, lane_from_bits(0x3f800000u & -(uint32_t)(x != 0) & -(uint32_t)(y != 0)))
TWO(or, lane_from_bits(0x3f800000u & (-(uint32_t)(x != 0) | -(uint32_t)(y != 0))))

/* Angles above LANE_ANGLE_MAX go to libm, one by one. */
static bool any_large_angle(const float *a, int n)
{
    float most = 0;

    for (int i = 0; i < n; i++)
        most = lane_abs(a[i]) > most ? lane_abs(a[i]) : most;
    return most > LANE_ANGLE_MAX;
}

static void lanes_sin(float *r, const float *a, const float *b, const float *c, int n)
{
    if (!any_large_angle(a, n)) {
        lanes_sin_near(r, a, b, c, n);
        return;
    }
    for (int i = 0; i < n; i++)
        r[i] = lane_abs(a[i]) > LANE_ANGLE_MAX ? (float)sin((double)a[i]) : lane_sin(a[i]);
}

static void lanes_cos(float *r, const float *a, const float *b, const float *c, int n)
{
    if (!any_large_angle(a, n)) {
        lanes_cos_near(r, a, b, c, n);
        return;
    }
    for (int i = 0; i < n; i++)
        r[i] = lane_abs(a[i]) > LANE_ANGLE_MAX ? (float)cos((double)a[i]) : lane_cos(a[i]);
}

/* ---- memory ---------------------------------------------------------------------------------- */

LANE float same(float x) { return x; }
LANE float from_u8(uint8_t x) { return (float)x; }
LANE float from_i32(int32_t x) { return (float)x; }

/* A constant count of channels lets the compiler shuffle whole vectors. */
#define LOAD_ROWS_OF(COUNT, FROM)                                                                 \
    case COUNT:                                                                                   \
        EACH_POINT                                                          \
            for (int r = 0; r < COUNT; r++)                                                       \
                to[r * stride + i] = FROM(m[i * COUNT + r]);                                      \
        break;
#define STORE_ROWS_OF(COUNT, TO)                                                                  \
    case COUNT:                                                                                   \
        EACH_POINT                                                          \
            for (int r = 0; r < COUNT; r++)                                                       \
                m[i * COUNT + r] = TO(from[r * stride + i]);                                      \
        break;

/* Two bf16 channels are the halves of a 32-bit word. */
static void load_bf16x2(float *restrict to, int stride, const uint16_t *restrict m, int points)
{
    EACH_POINT {
        uint32_t both;
        memcpy(&both, m + 2 * i, sizeof both);
        to[i] = lane_from_bits(both << 16);
        to[stride + i] = lane_from_bits(both & 0xffff0000u);
    }
}

static void store_bf16x2(uint16_t *restrict m, const float *restrict from, int stride, int points)
{
    EACH_POINT {
        uint32_t both = lane_to_bf16(from[i]) | (uint32_t)lane_to_bf16(from[stride + i]) << 16;
        memcpy(m + 2 * i, &both, sizeof both);
    }
}

#define MEMORY(NAME, TYPE, FROM, TO)                                                              \
    static void load_##NAME(float *restrict to, const void *from, int64_t first, int n)           \
    {                                                                                             \
        const TYPE *m = (const TYPE *)from + first;                                               \
        EACH_LANE                                                                                 \
            to[i] = FROM(m[i]);                                                                   \
    }                                                                                             \
    static void store_##NAME(void *to, int64_t first, const float *restrict from, int n)          \
    {                                                                                             \
        TYPE *m = (TYPE *)to + first;                                                             \
        EACH_LANE                                                                                 \
            m[i] = TO(from[i]);                                                                   \
    }                                                                                             \
    static void gather_##NAME(float *restrict to, const void *from, int64_t first,                \
                              const int32_t *restrict at, int n)                                  \
    {                                                                                             \
        const TYPE *m = (const TYPE *)from + first;                                               \
        EACH_LANE                                                                                 \
            to[i] = FROM(m[at[i]]);                                                               \
    }                                                                                             \
    static void scatter_##NAME(void *to, int64_t first, const int32_t *restrict at,               \
                               const float *restrict from, int n)                                 \
    {                                                                                             \
        TYPE *m = (TYPE *)to + first;                                                             \
        for (int i = 0; i < n; i++)                                                               \
            m[at[i]] = TO(from[i]);                                                               \
    }                                                                                             \
    static void load_groups_##NAME(float *restrict to, const void *from,                          \
                                   const int32_t *restrict at, int n)                             \
    {                                                                                             \
        for (int k = 0; k < n; k += MAP_ROW) {                                                    \
            const TYPE *m = (const TYPE *)from + at[k];                                           \
            for (int i = 0; i < MAP_ROW; i++)                                                     \
                to[k + i] = FROM(m[i]);                                                           \
        }                                                                                         \
    }                                                                                             \
    static void store_groups_##NAME(void *to, const int32_t *restrict at,                         \
                                    const float *restrict from, int n)                            \
    {                                                                                             \
        for (int k = 0; k < n; k += MAP_ROW) {                                                    \
            TYPE *restrict m = (TYPE *)to + at[k];                                                \
            for (int i = 0; i < MAP_ROW; i++)                                                     \
                m[i] = TO(from[k + i]);                                                           \
        }                                                                                         \
    }                                                                                             \
    static void load_rows_##NAME(float *restrict to, int stride, const void *from, int64_t first, \
                                 int rows, int points)                                            \
    {                                                                                             \
        const TYPE *restrict m = (const TYPE *)from + first;                                      \
        switch (rows) {                                                                           \
        LOAD_ROWS_OF(1, FROM)                                                                     \
        LOAD_ROWS_OF(2, FROM)                                                                     \
        LOAD_ROWS_OF(3, FROM)                                                                     \
        LOAD_ROWS_OF(4, FROM)                                                                     \
        default:                                                                                  \
            for (int i = 0; i < points; i++)                                                      \
                for (int r = 0; r < rows; r++)                                                    \
                    to[r * stride + i] = FROM(m[i * rows + r]);                                   \
        }                                                                                         \
    }                                                                                             \
    static void store_rows_##NAME(void *to, int64_t first, const float *restrict from,            \
                                  int stride, int rows, int points)                               \
    {                                                                                             \
        TYPE *restrict m = (TYPE *)to + first;                                                    \
        switch (rows) {                                                                           \
        STORE_ROWS_OF(1, TO)                                                                      \
        STORE_ROWS_OF(2, TO)                                                                      \
        STORE_ROWS_OF(3, TO)                                                                      \
        STORE_ROWS_OF(4, TO)                                                                      \
        default:                                                                                  \
            for (int i = 0; i < points; i++)                                                      \
                for (int r = 0; r < rows; r++)                                                    \
                    m[i * rows + r] = TO(from[r * stride + i]);                                   \
        }                                                                                         \
    }

MEMORY(f32, float, same, same)
MEMORY(bf16, uint16_t, lane_from_bf16, lane_to_bf16)
MEMORY(f16, uint16_t, lane_from_f16, lane_to_f16)
MEMORY(u8, uint8_t, from_u8, lane_to_u8)
MEMORY(i32, int32_t, from_i32, lane_to_i32)

/* ---- many rows ------------------------------------------------------------------------------- */

/* Transposes of squares of points and channels: 4 x 4, and 8 x 8 where a vector has eight lanes. */
typedef float four __attribute__((vector_size(16)));
typedef uint32_t four_bits __attribute__((vector_size(16)));

LANE void four_transpose(four *x)
{
    four a = SHUFFLE(four_bits, x[0], x[1], 0, 4, 1, 5);
    four b = SHUFFLE(four_bits, x[2], x[3], 0, 4, 1, 5);
    four c = SHUFFLE(four_bits, x[0], x[1], 2, 6, 3, 7);
    four d = SHUFFLE(four_bits, x[2], x[3], 2, 6, 3, 7);

    x[0] = SHUFFLE(four_bits, a, b, 0, 1, 4, 5);
    x[1] = SHUFFLE(four_bits, a, b, 2, 3, 6, 7);
    x[2] = SHUFFLE(four_bits, c, d, 0, 1, 4, 5);
    x[3] = SHUFFLE(four_bits, c, d, 2, 3, 6, 7);
}

#if defined(__AVX2__)
typedef float eight __attribute__((vector_size(32)));
typedef uint32_t eight_bits __attribute__((vector_size(32)));

/* 4 x 4 transposes in both halves of each vector, then an exchange of halves. */
LANE void eight_transpose(eight *x)
{
    eight a[8], b[8];

    _Pragma("GCC unroll 4") for (int k = 0; k < 8; k += 2) {
        a[k] = SHUFFLE(eight_bits, x[k], x[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        a[k + 1] = SHUFFLE(eight_bits, x[k], x[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    _Pragma("GCC unroll 2") for (int k = 0; k < 8; k += 4)
        _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++) {
            b[k + 2 * i] = SHUFFLE(eight_bits, a[k + i], a[k + 2 + i], 0, 1, 8, 9, 4, 5, 12, 13);
            b[k + 2 * i + 1] = SHUFFLE(eight_bits, a[k + i], a[k + 2 + i], 2, 3, 10, 11, 6, 7, 14,
                                       15);
        }
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) {
        x[k] = SHUFFLE(eight_bits, b[k], b[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        x[k + 4] = SHUFFLE(eight_bits, b[k], b[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#endif

/* Load and store N lanes; 'to_bf16' equals lane_to_bf16. */
#define SQUARE(N, name)                                                                           \
    typedef float name##_loose __attribute__((vector_size(4 * N), aligned(4), may_alias));        \
    typedef uint16_t name##_halves __attribute__((vector_size(2 * N)));                           \
    LANE name name##_from_f32(const float *m) { return (name)*(const name##_loose *)m; }          \
    LANE void name##_to_f32(float *m, name x) { *(name##_loose *)m = (name##_loose)x; }           \
    LANE name name##_from_bf16(const uint16_t *m)                                                 \
    {                                                                                             \
        name##_halves words;                                                                      \
        memcpy(&words, m, sizeof words);                                                          \
        return (name)(__builtin_convertvector(words, name##_bits) << 16);                         \
    }                                                                                             \
    LANE void name##_to_bf16(uint16_t *m, name x)                                                 \
    {                                                                                             \
        name##_bits u = (name##_bits)x, none = (name##_bits)(x != x);                             \
        name##_bits even = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;                                \
        name##_halves words;                                                                      \
        even = (none & ((u >> 16) | 0x40u)) | (~none & even);                                     \
        words = __builtin_convertvector(even, name##_halves);                                     \
        memcpy(m, &words, sizeof words);                                                          \
    }

SQUARE(4, four)
#if defined(__AVX2__)
SQUARE(8, eight)
#endif

#define EACH_OF(N) _Pragma("GCC unroll 8") for (int k = 0; k < N; k++)

/*
 * Transpose blocks of N points and N rows from FROM to TO, for point i + k and row at + k. The last
 * block of rows may overlap the one before.
 */
#define N_BY_N(N, name, FROM, TO)                                                                 \
    for (int i = 0; i < whole; i += N)                                                            \
        for (int r = 0; r < rows; r += N) {                                                       \
            int at = r < rows - N ? r : rows - N;                                                 \
            name x[N];                                                                            \
            EACH_OF(N) x[k] = FROM;                                                               \
            name##_transpose(x);                                                                  \
            EACH_OF(N) TO;                                                                        \
        }

/* Blocks of N for at least LEAST rows; REST takes the remaining points, or fewer rows. */
#define ROWS_BY(N, name, LEAST, NAME, TYPE, REST)                                                 \
    static void load_##name##_##NAME(float *to, int stride, const void *from, int64_t first,      \
                                     int rows, int points)                                        \
    {                                                                                             \
        const TYPE *m = (const TYPE *)from + first;                                               \
        int whole = rows < LEAST ? 0 : points & -N;                                               \
        N_BY_N(N, name, name##_from_##NAME(m + (int64_t)(i + k) * rows + at),                     \
               name##_to_f32(to + (int64_t)(at + k) * stride + i, x[k]))                          \
        load_##REST##_##NAME(to + whole, stride, from, first + (int64_t)whole * rows, rows,       \
                             points - whole);                                                     \
    }                                                                                             \
    static void store_##name##_##NAME(void *to, int64_t first, const float *from, int stride,     \
                                      int rows, int points)                                       \
    {                                                                                             \
        TYPE *m = (TYPE *)to + first;                                                             \
        int whole = rows < LEAST ? 0 : points & -N;                                               \
        N_BY_N(N, name, name##_from_f32(from + (int64_t)(at + k) * stride + i),                   \
               name##_to_##NAME(m + (int64_t)(i + k) * rows + at, x[k]))                          \
        store_##REST##_##NAME(to, first + (int64_t)whole * rows, from + whole, stride, rows,      \
                              points - whole);                                                    \
    }

ROWS_BY(4, four, 5, f32, float, rows)
ROWS_BY(4, four, 5, bf16, uint16_t, rows)
#if defined(__AVX2__)
ROWS_BY(8, eight, 8, f32, float, four)
ROWS_BY(8, eight, 8, bf16, uint16_t, four)
#define load_many_f32 load_eight_f32
#define load_many_bf16 load_eight_bf16
#define store_many_f32 store_eight_f32
#define store_many_bf16 store_eight_bf16
#else
#define load_many_f32 load_four_f32
#define load_many_bf16 load_four_bf16
#define store_many_f32 store_four_f32
#define store_many_bf16 store_four_bf16
#endif

static void load_many_rows_bf16(float *to, int stride, const void *from, int64_t first, int rows,
                                int points)
{
    if (rows == 2)
        load_bf16x2(to, stride, (const uint16_t *)from + first, points);
    else
        load_many_bf16(to, stride, from, first, rows, points);
}

static void store_many_rows_bf16(void *to, int64_t first, const float *from, int stride, int rows,
                                 int points)
{
    if (rows == 2)
        store_bf16x2((uint16_t *)to + first, from, stride, points);
    else
        store_many_bf16(to, first, from, stride, rows, points);
}

static void fill(float *to, float value, int n)
{
    WHOLE_ROWS;
    EACH_LANE
        to[i] = value;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define ROW_ONE(KIND, name) [PONS_MAP_##KIND] = { lanes_##name }
#define ROW_TYPES(what) \
    { [PONS_F32] = what##_f32, [PONS_BF16] = what##_bf16, [PONS_F16] = what##_f16, \
      [PONS_U8] = what##_u8, [PONS_I32] = what##_i32 }

const map_lanes CPU_ISA_NAME(map_lanes) = {
    .name = CPU_ISA_TEXT,
    .machine = &CPU_ISA_NAME(map_machine),
    .operation = {
        ROW_ONE(NEG, neg), ROW_ONE(ABS, abs), ROW_ONE(SIGN, sign), ROW_ONE(FLOOR, floor),
        ROW_ONE(ROUND, round), ROW_ONE(SQRT, sqrt), ROW_ONE(EXP, exp), ROW_ONE(EXPM1, expm1),
        ROW_ONE(LOG, log), ROW_ONE(LOG1P, log1p), ROW_ONE(SIN, sin), ROW_ONE(COS, cos),
        ROW_ONE(TANH, tanh), ROW_ONE(ERF, erf), ROW_ONE(ISFINITE, isfinite), ROW_ONE(NOT, not),
        ROW_ONE(STOP_GRADIENT, copy),
        ROW_ONE(ADD, add), ROW_ONE(SUB, sub), ROW_ONE(MUL, mul), ROW_ONE(DIV, div),
        ROW_ONE(MIN, min), ROW_ONE(MAX, max), ROW_ONE(POW, pow), ROW_ONE(EQUAL, equal),
        ROW_ONE(NOT_EQUAL, not_equal), ROW_ONE(LESS, less), ROW_ONE(LESS_EQUAL, less_equal),
        ROW_ONE(GREATER, greater), ROW_ONE(GREATER_EQUAL, greater_equal), ROW_ONE(AND, and),
        ROW_ONE(OR, or),
        ROW_ONE(SELECT, select),
    },
    .load = ROW_TYPES(load),
    .store = ROW_TYPES(store),
    .gather = ROW_TYPES(gather),
    .scatter = ROW_TYPES(scatter),
    .load_groups = ROW_TYPES(load_groups),
    .store_groups = ROW_TYPES(store_groups),
    .load_rows = { [PONS_F32] = load_many_f32, [PONS_BF16] = load_many_rows_bf16,
                   [PONS_F16] = load_rows_f16, [PONS_U8] = load_rows_u8,
                   [PONS_I32] = load_rows_i32 },
    .store_rows = { [PONS_F32] = store_many_f32, [PONS_BF16] = store_many_rows_bf16,
                    [PONS_F16] = store_rows_f16, [PONS_U8] = store_rows_u8,
                    [PONS_I32] = store_rows_i32 },
    .fill = fill,
    .random = { CPU_ISA_NAME(map_uniform), CPU_ISA_NAME(map_normal) },
};
