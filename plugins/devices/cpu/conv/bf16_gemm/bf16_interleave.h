/*
 * bf16_interleave.h - interleave 16-bit elements, for files compiled for AVX-512.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_BF16_INTERLEAVE_H
#define PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_BF16_INTERLEAVE_H

#include <immintrin.h>

/* Number i of the lower half and of the upper half side by side. */
static inline __m512i bf16_interleave(__m512i halves)
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9,
                                           24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1,
                                           16, 0);

    return _mm512_permutexvar_epi16(order, halves);
}

#endif
