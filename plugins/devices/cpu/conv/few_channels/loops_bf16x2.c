/*
 * loops_bf16x2.c - the table of loops over pairs of bf16 (loops.h) for AVX512-BF16, with
 * conversions of rows to pairs and of sums to bf16.
 */
#include "cpu/conv/few_channels/loops.h"
#include "cpu/conv/bf16_gemm/bf16_interleave.h"

#include <stddef.h>
#include <string.h>

enum { BOTH = 2 * FEW_CHANNELS_LANES };

static inline __m512i numbers(const uint16_t *row, int64_t i, __mmask32 mask)
{
    return row != NULL ? _mm512_maskz_loadu_epi16(mask, row + i) : _mm512_setzero_si512();
}

static inline __m512i low(__m512i a, __m512i b)
{
    return _mm512_or_si512(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(a)),
                           _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(b)), 16));
}

static inline __m512i high(__m512i a, __m512i b)
{
    return low(_mm512_zextsi256_si512(_mm512_extracti64x4_epi64(a, 1)),
               _mm512_zextsi256_si512(_mm512_extracti64x4_epi64(b, 1)));
}

static void interleave(float *to, const uint16_t *a, const uint16_t *b, int64_t count)
{
    int64_t i = 0;

    for (; i + BOTH <= count; i += BOTH) {
        __m512i u = numbers(a, i, ~0u), v = numbers(b, i, ~0u);
        _mm512_storeu_si512(to + i, low(u, v));
        _mm512_storeu_si512(to + i + FEW_CHANNELS_LANES, high(u, v));
    }
    if (i < count) {
        __mmask32 mask = (1u << (count - i)) - 1;
        __m512i u = numbers(a, i, mask), v = numbers(b, i, mask);
        _mm512_mask_storeu_epi32(to + i, (__mmask16)mask, low(u, v));
        _mm512_mask_storeu_epi32(to + i + FEW_CHANNELS_LANES,
                                 (__mmask16)(mask >> FEW_CHANNELS_LANES), high(u, v));
    }
}

/* Elements 2 i and 2 i + 1 of a row as a word. */
static inline __m512i words(const uint16_t *row, int i, __mmask16 mask)
{
    return row != NULL ? _mm512_maskz_loadu_epi32(mask, row + 2 * (int64_t)i)
                       : _mm512_setzero_si512();
}

static void split_2(float *to, int pitch, const uint16_t *a, const uint16_t *b, int width)
{
    const __mmask32 upper = 0xaaaaaaaa;

    for (int i = 0; i < width; i += FEW_CHANNELS_LANES) {
        __mmask16 mask = (__mmask16)(width - i < FEW_CHANNELS_LANES ? (1u << (width - i)) - 1
                                     : ~0u);
        __m512i u = words(a, i, mask), v = words(b, i, mask);
        _mm512_storeu_si512(to + i, _mm512_mask_blend_epi16(upper, u, _mm512_slli_epi32(v, 16)));
        _mm512_storeu_si512(to + pitch + i,
                            _mm512_mask_blend_epi16(upper, _mm512_srli_epi32(u, 16), v));
    }
}

static void split(float *to, int pitch, const uint16_t *a, const uint16_t *b, int width,
                  int channels)
{
    if (channels == 1)
        interleave(to, a, b, width);
    else
        split_2(to, pitch, a, b, width);
    for (int c = 0; c < channels; c++)
        memset(to + (int64_t)c * pitch + width, 0, (size_t)(pitch - width) * sizeof *to);
}

static void to_bf16(uint16_t *to, const float *from, int64_t count)
{
    int64_t i = 0;

    for (; i + FEW_CHANNELS_LANES <= count; i += FEW_CHANNELS_LANES)
        _mm256_storeu_si256((__m256i *)(to + i),
                            (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(from + i)));
    if (i < count) {
        __mmask16 mask = (__mmask16)((1u << (count - i)) - 1);
        _mm256_mask_storeu_epi16(to + i, mask,
                                 (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask,
                                                                                   from + i)));
    }
}

/* ---- channels together ----------------------------------------------------------------------- */

static inline void keep(uint16_t *to, int64_t i, int64_t count, __m512i numbers)
{
    if (i + BOTH <= count)
        _mm512_storeu_si512(to + i, numbers);
    else if (i < count)
        _mm512_mask_storeu_epi16(to + i, (1u << (count - i)) - 1, numbers);
}

/* Those of a, then those of b. */
static inline __m512i halves(const float *a, const float *b)
{
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(b), _mm512_loadu_ps(a));
}

static void join_2(uint16_t *to, const float *from, int pitch, int64_t count)
{
    for (int64_t i = 0; i < count; i += BOTH, from += FEW_CHANNELS_LANES)
        keep(to, i, count, bf16_interleave(halves(from, from + pitch)));
}

static void join_4(uint16_t *to, const float *from, int pitch, int64_t count)
{
    const __m512i low = _mm512_set_epi16(55, 39, 23, 7, 54, 38, 22, 6, 53, 37, 21, 5, 52, 36, 20, 4,
                                         51, 35, 19, 3, 50, 34, 18, 2, 49, 33, 17, 1, 48, 32, 16,
                                         0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(8));

    for (int64_t i = 0; i < count; i += 2 * BOTH, from += FEW_CHANNELS_LANES) {
        __m512i a = halves(from, from + pitch);
        __m512i b = halves(from + 2 * (int64_t)pitch, from + 3 * (int64_t)pitch);
        keep(to, i, count, _mm512_permutex2var_epi16(a, low, b));
        keep(to, i + BOTH, count, _mm512_permutex2var_epi16(a, high, b));
    }
}

static void join(uint16_t *to, const float *from, int pitch, int64_t count, int channels)
{
    switch (channels) {
    case 1: to_bf16(to, from, count); break;
    case 2: join_2(to, from, pitch, count); break;
    default: join_4(to, from, pitch, count); break;
    }
}

const few_channels_bf16x2 few_channels_bf16x2_avx512 = { &few_channels_vector_bf16x2,
    &few_channels_planar_bf16x2, interleave, split,
                                                         to_bf16, join, few_channels_upsample2_rows,
                                                             few_channels_interleave_row,
                                                         few_channels_in_place_rows };
