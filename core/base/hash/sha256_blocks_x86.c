/*
 * sha256_blocks_x86.c - the compression function of SHA-256 by the instructions that x86
 * processors have for it (Intel, "SHA Extensions"): two rounds at a time, four words of the
 * message at a time.
 */
#include "base/hash/sha256_blocks.h"

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>

#define SHA __attribute__((target("sha,sse4.1")))

/* The next four words of the message from the sixteen before them, of which the oldest are w[0]. */
SHA static inline __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));

    return _mm_sha256msg2_epu32(sum, w3);
}

SHA static inline __m128i first_words(const uint8_t *block, int i)
{
    const __m128i turned = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);

    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)block + i), turned);
}

/* The instructions want the variables as a b e f and c d g h, the first in the highest place. */
SHA static void add_blocks(uint32_t state[8], const uint8_t *block, size_t count)
{
    const __m128i *constant = (const __m128i *)hash_round_constant;
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);

    for (; count > 0; count--, block += 64) {
        __m128i w[4], abef_before = abef, cdgh_before = cdgh;

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i sum;

            w[i & 3] = i < 4 ? first_words(block, i)
                             : next_words(w[i & 3], w[(i + 1) & 3], w[(i + 2) & 3], w[(i + 3) & 3]);
            sum = _mm_add_epi32(w[i & 3], constant[i]);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

hash_blocks *hash_blocks_choose(void)
{
    unsigned a, b, c, d;

    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA && __builtin_cpu_supports("sse4.1"))
        return add_blocks;
    return hash_blocks_plain;
}

#else

hash_blocks *hash_blocks_choose(void)
{
    return hash_blocks_plain;
}

#endif
