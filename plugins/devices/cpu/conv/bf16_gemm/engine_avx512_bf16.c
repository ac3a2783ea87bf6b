/*
 * engine_avx512_bf16.c - products of pairs of bf16 on vectors (bf16_gemm.h), for processors with
 * AVX512-BF16 that have no tile registers; and of floats, along lines.
 *
 * The sums of eight rows by two columns, or of sixteen rows by one, stay in registers. Each pair of
 * a row is broadcast to a vector and multiplied by the lines of the panels. Steps are divided into
 * pieces whose panels stay in the L1 cache for all rows. The order of a sum is that of its steps.
 */
#include "cpu/conv/bf16_gemm/bf16_gemm.h"

#include <immintrin.h>

#include "base/integer.h"

#define DOTS __attribute__((target("avx512bf16")))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum {
    PIECE = 6,             /* steps: two columns' panels are 12 KiB, 32 rows as much */
    PAIRS = GEMM_ELEMENTS / 2,
    APART = 3,             /* every third row has an address of its own */
    SUMS = GEMM_TILE / 2 * GEMM_ACROSS
};

/* sum + a b, where a and b are pairs of bf16, or floats. */
DOTS INLINE __m512 add_product(bool floats, __m512 sum, __m512i a, __m512i b)
{
    if (floats)
        return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

/*
 * sum[r * columns + n] += pair k of row r, broadcast, times line n. row[i] is the address of row
 * i * APART, and rows are 'pitch' apart.
 */
DOTS INLINE void add_pair(bool floats, __m512 *sum, int rows, int columns, const char *const *row,
                          int64_t pitch, int64_t k, const __m512i *line)
{
    UNROLL
    for (int r = 0; r < rows; r++) {
        __m512i pair = _mm512_set1_epi32(
            _mm_cvtsi128_si32(_mm_loadu_si32(row[r / APART] + r % APART * pitch + 4 * k)));
        UNROLL
        for (int n = 0; n < columns; n++)
            sum[r * columns + n] = add_product(floats, sum[r * columns + n], pair, line[n]);
    }
}

/* Rows 'first' .. first + rows - 1 of tile 'tile' by all columns, steps begin .. end - 1. */
DOTS INLINE void block(const gemm_product *p, int tile, int first, int rows, int columns,
                       int64_t begin, int64_t end, bool add)
{
    int64_t pitch = p->pitch;
    const char *a = p->a[tile] + first * pitch;
    char *c[GEMM_COLUMNS];
    __m512 sum[SUMS];

    UNROLL
    for (int n = 0; n < columns; n++)
        c[n] = (char *)p->c[tile][n] + first * p->c_pitch;
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int n = 0; n < columns; n++)
            sum[r * columns + n] = add ? _mm512_loadu_ps(c[n] + r * p->c_pitch)
                                       : _mm512_setzero_ps();
    for (int64_t s = begin; s < end; s++) {
        const char *row[(GEMM_TILE + APART - 1) / APART], *b[GEMM_COLUMNS];
        UNROLL
        for (int i = 0; i < (rows + APART - 1) / APART; i++)
            row[i] = a + p->a_at[s] + i * APART * pitch;
        UNROLL
        for (int n = 0; n < columns; n++)
            b[n] = p->b[n] + p->b_at[s];
        _Pragma("GCC unroll 4")
        for (int k = 0; k < PAIRS; k++) {
            __m512i line[GEMM_COLUMNS];
            UNROLL
            for (int n = 0; n < columns; n++)
                line[n] = _mm512_load_si512(b[n] + k * (int)GEMM_STEP);
            add_pair(false, sum, rows, columns, row, pitch, k, line);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int n = 0; n < columns; n++)
            _mm512_storeu_ps(c[n] + r * p->c_pitch, sum[r * columns + n]);
}

DOTS static void half_by_two(const gemm_product *p, int tile, int first, int64_t begin, int64_t end,
                             bool add)
{
    block(p, tile, first, GEMM_TILE / 2, 2, begin, end, add);
}

DOTS static void all_by_one(const gemm_product *p, int tile, int64_t begin, int64_t end, bool add)
{
    block(p, tile, 0, GEMM_TILE, 1, begin, end, add);
}

static void piece(const gemm_product *p, int64_t begin, int64_t end, bool add)
{
    for (int tile = 0; tile < p->rows; tile++) {
        if (p->columns == 1) {
            all_by_one(p, tile, begin, end, add);
            continue;
        }
        half_by_two(p, tile, 0, begin, end, add);
        half_by_two(p, tile, GEMM_TILE / 2, begin, end, add);
    }
}

static void multiply(const gemm_product *p)
{
    int64_t begin = 0, end;

    do {
        end = min_i64(begin + PIECE, p->steps);
        piece(p, begin, end, p->add || begin > 0);
        begin = end;
    } while (begin < p->steps);
}

/* ---- along lines ----------------------------------------------------------------------------- */

/* Rows 'first' .. first + rows - 1 by all columns. */
DOTS INLINE void line_block(bool floats, const gemm_row_product *p, int first, int rows,
                            int columns)
{
    const int64_t pitch = p->pitch;
    float *c = p->c + first * GEMM_ACROSS * GEMM_TILE;
    __m512 sum[SUMS];

    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int n = 0; n < columns; n++)
            sum[r * columns + n] = p->add ? _mm512_loadu_ps(c + (r * GEMM_ACROSS + n) * GEMM_TILE)
                                          : _mm512_setzero_ps();
    for (const gemm_run *run = p->run, *end = run + p->count; run < end; run++) {
        const char *row[(GEMM_TILE + APART - 1) / APART], *b[GEMM_ACROSS];
        UNROLL
        for (int i = 0; i < (rows + APART - 1) / APART; i++)
            row[i] = p->a + run->a + (first + i * APART) * pitch;
        UNROLL
        for (int n = 0; n < columns; n++)
            b[n] = p->b[n] + run->b;
        for (int64_t k = 0; k < run->pairs; k++) {
            __m512i line[GEMM_ACROSS];
            UNROLL
            for (int n = 0; n < columns; n++)
                line[n] = _mm512_load_si512(b[n] + k * (int)GEMM_STEP);
            add_pair(floats, sum, rows, columns, row, pitch, k, line);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int n = 0; n < columns; n++)
            _mm512_storeu_ps(c + (r * GEMM_ACROSS + n) * GEMM_TILE, sum[r * columns + n]);
}

DOTS INLINE void half_by_lines(bool floats, const gemm_row_product *p, int first)
{
    if (p->columns == 3)
        line_block(floats, p, first, GEMM_TILE / 2, 3);
    else if (p->columns == 2)
        line_block(floats, p, first, GEMM_TILE / 2, 2);
    else
        line_block(floats, p, first, GEMM_TILE / 2, 1);
}

DOTS static void half_of_pairs(const gemm_row_product *p, int first)
{
    half_by_lines(false, p, first);
}

DOTS static void half_of_floats(const gemm_row_product *p, int first)
{
    half_by_lines(true, p, first);
}

DOTS static void all_of_pairs(const gemm_row_product *p)
{
    line_block(false, p, 0, GEMM_TILE, 1);
}

DOTS static void all_of_floats(const gemm_row_product *p)
{
    line_block(true, p, 0, GEMM_TILE, 1);
}

/* Registers hold the sums of one column by all rows; two columns take two calls. */
INLINE void multiply_rows(const gemm_row_product *p, void (*all)(const gemm_row_product *),
                          void (*half)(const gemm_row_product *, int))
{
    if (p->columns == 1 && p->rows == GEMM_TILE) {
        all(p);
        return;
    }
    half(p, 0);
    if (p->rows == GEMM_TILE)
        half(p, GEMM_TILE / 2);
}

static void multiply_lines(const gemm_row_product *p)
{
    multiply_rows(p, all_of_pairs, half_of_pairs);
}

static void multiply_float_lines(const gemm_row_product *p)
{
    multiply_rows(p, all_of_floats, half_of_floats);
}

static void nothing(void)
{
}

const gemm_engine engine_avx512_bf16 = { nothing, multiply, nothing, multiply_lines };
const gemm_engine engine_avx512_f32 = { nothing, NULL, nothing, multiply_float_lines };
