/*
 * wide_bf16.c - products of pairs of bf16 with AVX512-BF16, and their packing (wide.h).
 */
#include "wide_bf16.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define BF16 __attribute__((target("avx512bf16")))

enum { HELD = 8 };

/* HELD rows of one row of tiles. */
BF16 INLINE void multiply_block(const wide_product *p, int row, int first, int columns)
{
    __m512 sum[HELD][WIDE_COLUMNS];

#pragma GCC unroll 8
    for (int r = 0; r < HELD; r++)
#pragma GCC unroll 2
        for (int n = 0; n < columns; n++)
            sum[r][n] = p->add ? _mm512_loadu_ps(p->c[row][n] + (first + r) * WIDE_TILE)
                               : _mm512_setzero_ps();
    for (int64_t s = 0; s < p->steps; s++) {
        const char *a = p->a[row] + p->a_at[s] + first * p->pitch;
        for (int k = 0; k < WIDE_TILE; k++)
#pragma GCC unroll 2
            for (int n = 0; n < columns; n++) {
                __m512i b = _mm512_loadu_si512(p->b[n] + p->b_at[s] + k * WIDE_STEP);
#pragma GCC unroll 8
                for (int r = 0; r < HELD; r++) {
                    int pair;
                    __builtin_memcpy(&pair, a + r * p->pitch + 4 * k, sizeof pair);
                    sum[r][n] = _mm512_dpbf16_ps(sum[r][n], (__m512bh)_mm512_set1_epi32(pair),
                                                 (__m512bh)b);
                }
            }
    }
#pragma GCC unroll 8
    for (int r = 0; r < HELD; r++)
#pragma GCC unroll 2
        for (int n = 0; n < columns; n++)
            _mm512_storeu_ps(p->c[row][n] + (first + r) * WIDE_TILE, sum[r][n]);
}

BF16 static void multiply(const wide_product *p)
{
    for (int row = 0; row < p->rows; row++)
        for (int first = 0; first < WIDE_TILE; first += HELD) {
            if (p->columns == 2)
                multiply_block(p, row, first, 2);
            else
                multiply_block(p, row, first, 1);
        }
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Channels of two neighbouring positions, side by side. */
INLINE __m512i pair(const char *const *position, int first, __mmask16 mask)
{
    __m256i a = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)position[0] + first);
    __m256i b = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)position[1] + first);

    return _mm512_or_si512(_mm512_cvtepu16_epi32(a),
                           _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16));
}

void wide_bf16_panel(void *to, pons_type type, const char *const *position, int first, int count)
{
    __mmask16 mask = (__mmask16)((1u << count) - 1);

    (void)type;
    for (int k = 0; k < WIDE_TILE; k++)
        _mm512_store_si512((char *)to + k * WIDE_STEP, pair(position + 2 * k, first, mask));
}

/* Rows of 16 units become columns, by halves: units, pairs, quarters of a vector. */
INLINE void turn(__m512i r[WIDE_TILE])
{
    __m512i t[WIDE_TILE];

    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int k = 0; k < 2; k++) {
            r[i + 2 * k] = _mm512_unpacklo_epi64(t[i + k], t[i + k + 2]);
            r[i + 2 * k + 1] = _mm512_unpackhi_epi64(t[i + k], t[i + k + 2]);
        }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
        r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

void wide_bf16_rows(void *to, int64_t pitch, pons_type type, const char *const *position,
                    int first, int count)
{
    __mmask16 mask = (__mmask16)((1u << count) - 1);
    __m512i r[WIDE_TILE];

    (void)type;
    for (int k = 0; k < WIDE_TILE; k++)
        r[k] = pair(position + 2 * k, first, mask);
    turn(r);
    for (int c = 0; c < WIDE_TILE; c++)
        _mm512_storeu_si512((char *)to + c * pitch, r[c]);
}

const wide_lanes wide_bf16 = {
    .name = "avx512_bf16", .unit = 2, .pack_panel = wide_bf16_panel, .pack_rows = wide_bf16_rows,
    .multiply = multiply,
};
