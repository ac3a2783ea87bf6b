/*
 * loops_bf16x2.c - the loops of few_channels_loops.h over pairs of bf16, for processors that
 * multiply them (AVX512-BF16), rows that become such pairs, and sums that become bf16.
 */
#include "cpu/conv/few_channels/few_channels_loops.h"
#include "cpu/conv/bf16_gemm/bf16_interleave.h"

#include <stddef.h>
#include <string.h>

enum { BOTH = 2 * NARROW_LANES };

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

static void zip(float *to, const uint16_t *a, const uint16_t *b, int64_t count)
{
    int64_t i = 0;

    for (; i + BOTH <= count; i += BOTH) {
        __m512i u = numbers(a, i, ~0u), v = numbers(b, i, ~0u);
        _mm512_storeu_si512(to + i, low(u, v));
        _mm512_storeu_si512(to + i + NARROW_LANES, high(u, v));
    }
    if (i < count) {
        __mmask32 mask = (1u << (count - i)) - 1;
        __m512i u = numbers(a, i, mask), v = numbers(b, i, mask);
        _mm512_mask_storeu_epi32(to + i, (__mmask16)mask, low(u, v));
        _mm512_mask_storeu_epi32(to + i + NARROW_LANES, (__mmask16)(mask >> NARROW_LANES),
                                 high(u, v));
    }
}

/* Numbers 2 i and 2 i + 1 of a row as a word. */
static inline __m512i words(const uint16_t *row, int i, __mmask16 mask)
{
    return row != NULL ? _mm512_maskz_loadu_epi32(mask, row + 2 * (int64_t)i)
                       : _mm512_setzero_si512();
}

static void split_2(float *to, int pitch, const uint16_t *a, const uint16_t *b, int width)
{
    const __mmask32 upper = 0xaaaaaaaa;

    for (int i = 0; i < width; i += NARROW_LANES) {
        __mmask16 mask = (__mmask16)(width - i < NARROW_LANES ? (1u << (width - i)) - 1 : ~0u);
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
        zip(to, a, b, width);
    else
        split_2(to, pitch, a, b, width);
    for (int c = 0; c < channels; c++)
        memset(to + (int64_t)c * pitch + width, 0, (size_t)(pitch - width) * sizeof *to);
}

static void to_bf16(uint16_t *to, const float *from, int64_t count)
{
    int64_t i = 0;

    for (; i + NARROW_LANES <= count; i += NARROW_LANES)
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
    for (int64_t i = 0; i < count; i += BOTH, from += NARROW_LANES)
        keep(to, i, count, wide_zip(halves(from, from + pitch)));
}

static void join_4(uint16_t *to, const float *from, int pitch, int64_t count)
{
    const __m512i low = _mm512_set_epi16(55, 39, 23, 7, 54, 38, 22, 6, 53, 37, 21, 5, 52, 36, 20, 4,
                                         51, 35, 19, 3, 50, 34, 18, 2, 49, 33, 17, 1, 48, 32, 16,
                                         0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(8));

    for (int64_t i = 0; i < count; i += 2 * BOTH, from += NARROW_LANES) {
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

const narrow_pairs narrow_pairs_avx512 = { &narrow_wide_pairs, &narrow_planar_pairs, zip, split,
                                           to_bf16, join, narrow_up_rows, narrow_zip_row,
                                           narrow_place_rows };
