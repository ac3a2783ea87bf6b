/*
 * few_channels_vector.h - how many sums fit into registers, and lanes of two vectors mixed and
 * sorted.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_VECTOR_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_VECTOR_H

#include "cpu/simd/shuffle.h"
#include "cpu/simd/vector.h"

#include <stdbool.h>
#include <stdint.h>

enum { SUMS = VECTOR_LANES == 16 ? 24 : 12 };

/*
 * The count of products in a chain of sums. Each step of a chain rounds the sum so far. So n
 * products in one chain have an error of n, and in chains of m an error of sqrt(n m). 0: pairs of
 * bf16 are so coarse that a chain need not end.
 */
#if defined(VECTOR_BF16X2)
enum { CHAIN = 0, LONG_CHAIN = 0 };
#else
enum { CHAIN = 18, LONG_CHAIN = 32 };
#endif

/* End a chain: store the sum, or add it to the sum of the chains before. */
VECTOR void chain_end(float *to, vector sum, bool first)
{
    vector_store(to, first ? sum : vector_load(to) + sum);
}

/*
 * Keeps a loaded vector in a register. Compilers would load it again for each product, which costs
 * more where rows are not aligned to cache lines. With few registers that is the better way.
 */
#if defined(__AVX512F__)
#define LOADED_ONCE(v) __asm__("" : "+v"(v))
#else
#define LOADED_ONCE(v) (void)(v)
#endif

typedef int32_t vector_lanes __attribute__((vector_size(4 * VECTOR_LANES)));

#define MIX(a, b, ...) SHUFFLE(vector_lanes, a, b, __VA_ARGS__)

/* a0 b0 a1 b1 ..., its first and its second half; what takes it apart again. */
#if defined(__AVX512F__)
VECTOR vector mix_low(vector a, vector b)
{
    return MIX(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
VECTOR vector mix_high(vector a, vector b)
{
    return MIX(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
VECTOR vector even(vector a, vector b)
{
    return MIX(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
VECTOR vector odd(vector a, vector b)
{
    return MIX(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
#elif defined(__FMA__)
VECTOR vector mix_low(vector a, vector b) { return MIX(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
VECTOR vector mix_high(vector a, vector b) { return MIX(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
VECTOR vector even(vector a, vector b) { return MIX(a, b, 0, 2, 4, 6, 8, 10, 12, 14); }
VECTOR vector odd(vector a, vector b) { return MIX(a, b, 1, 3, 5, 7, 9, 11, 13, 15); }
#else
VECTOR vector mix_low(vector a, vector b) { return MIX(a, b, 0, 4, 1, 5); }
VECTOR vector mix_high(vector a, vector b) { return MIX(a, b, 2, 6, 3, 7); }
VECTOR vector even(vector a, vector b) { return MIX(a, b, 0, 2, 4, 6); }
VECTOR vector odd(vector a, vector b) { return MIX(a, b, 1, 3, 5, 7); }
#endif

#endif
