/*
 * gemm_pack.c - pack bf16 as panels and rows of tiles, and store results (bf16_gemm.h). The file is
 * compiled for AVX-512, which every processor with an engine of bf16_gemm.h has.
 */
#include "cpu/conv/bf16_gemm/bf16_gemm.h"

#include "cpu/conv/bf16_gemm/bf16_interleave.h"

#include <stddef.h>

/* Interleave the channels of two neighbouring positions. */
static inline __m512i pair(const char *const *position, int first, __mmask16 mask)
{
    __m256i a = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)position[0] + first);
    __m256i b = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)position[1] + first);

    return bf16_interleave(_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
}

void gemm_pack_panel(void *to, const char *const *position, int first, int count)
{
    __mmask16 mask = (__mmask16)((1u << count) - 1);

    for (int k = 0; k < GEMM_TILE; k++)
        _mm512_store_si512((char *)to + k * GEMM_STEP, pair(position + 2 * k, first, mask));
}

void gemm_pack_line(void *to, const char *from, const gemm_line *line, int count)
{
    static const uint16_t zeros[GEMM_TILE];
    __mmask16 mask = (__mmask16)((1u << count) - 1);

    for (int p = 0, j = 0; p < line->pairs; p++) {
        const char *position[2];

        for (int i = 0; i < 2; i++, j++)
            position[i] = j < line->first || j >= line->end ? (const char *)zeros
                                                            : from + line->start + j * line->step;
        _mm512_store_si512((char *)to + p * GEMM_STEP, pair(position, 0, mask));
    }
}

/* Rows of 16 units become columns, by halves: units, pairs, quarters of a vector. */
static inline void turn(__m512i r[GEMM_TILE])
{
    __m512i t[GEMM_TILE];

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

void gemm_pack_rows(void *to, int64_t pitch, const char *const *position, int first, int count)
{
    __mmask16 mask = (__mmask16)((1u << count) - 1);
    __m512i r[GEMM_TILE];

    for (int k = 0; k < GEMM_TILE; k++)
        r[k] = pair(position + 2 * k, first, mask);
    turn(r);
    for (int c = 0; c < GEMM_TILE; c++)
        _mm512_storeu_si512((char *)to + c * pitch, r[c]);
}

void gemm_pack_float_rows(void *to, int64_t pitch, const char *const *position, int first,
                          int count)
{
    __mmask16 mask = (__mmask16)((1u << count) - 1);
    __m512i r[GEMM_TILE];

    for (int k = 0; k < GEMM_TILE; k++)
        r[k] = _mm512_maskz_loadu_epi32(mask, (const float *)position[k] + first);
    turn(r);
    for (int c = 0; c < GEMM_TILE; c++)
        _mm512_storeu_si512((char *)to + c * pitch, r[c]);
}

void gemm_pack_columns(void *to, const char *const *row)
{
    __m512i r[GEMM_TILE];

    for (int k = 0; k < GEMM_TILE; k++)
        r[k] = _mm512_loadu_si512(row[k]);
    turn(r);
    for (int k = 0; k < GEMM_TILE; k++)
        _mm512_store_si512((char *)to + k * GEMM_STEP, r[k]);
}

__attribute__((target("avx512bf16")))
void gemm_store(const float *tile, char *const *place, int first, int count)
{
    __mmask16 mask = (__mmask16)((1u << count) - 1);

    for (int r = 0; r < GEMM_TILE; r++, tile += GEMM_TILE)
        if (place[r] != NULL)
            _mm256_mask_storeu_epi16((uint16_t *)place[r] + first, mask,
                                     (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(tile)));
}
