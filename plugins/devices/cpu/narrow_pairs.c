/*
 * narrow_pairs.c - the loops of narrow_lanes.h over pairs of bf16, for processors that multiply
 * them (AVX512-BF16), and neighbours that become such pairs.
 */
#include "narrow_lanes.h"

#include <immintrin.h>

/* Lanes j of two positions, side by side. */
static inline __m512i pair(const uint16_t *a, const uint16_t *b, __mmask16 mask, __mmask16 both)
{
    __m256i low = _mm256_maskz_loadu_epi16(mask, a), high = _mm256_maskz_loadu_epi16(both, b);

    return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                           _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

static void zip(float *to, int pitch, const uint16_t *from, int step, int count, int positions)
{
    for (int w = 0; w < positions; w += 2, to += pitch, from += 2 * (int64_t)step)
        for (int j = 0; j < count; j += NARROW_LANES) {
            int left = count - j < NARROW_LANES ? count - j : NARROW_LANES;
            __mmask16 mask = (__mmask16)((1u << left) - 1), both = w + 1 < positions ? mask : 0;
            _mm512_mask_storeu_epi32(to + j, mask, pair(from + j, from + step + j, mask, both));
        }
}

const narrow_pairs narrow_pairs_avx512 = { &narrow_wide_pairs, &narrow_planar_pairs, zip };
