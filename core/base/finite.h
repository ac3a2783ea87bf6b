/*
 * finite.h - test floats for infinity and NaN.
 */
#ifndef CORE_BASE_FINITE_H
#define CORE_BASE_FINITE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Tests the bits, so that compilers vectorise the loop. 'x' may have any alignment of a float. */
static inline bool floats_are_finite(const float *x, int64_t count)
{
    const uint32_t exponent = UINT32_C(0x7f800000);
    uint32_t not_finite = 0;

    for (int64_t n = 0; n < count; n++) {
        uint32_t bits;
        memcpy(&bits, x + n, sizeof bits);
        not_finite |= (bits & exponent) == exponent;
    }
    return !not_finite;
}

#endif
