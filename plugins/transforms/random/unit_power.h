/*
 * unit_power.h - x^exponent of floats from 0 to about 1, without a branch, so that a loop over many
 * values vectorises. The bits depend neither on the C library nor on the instruction set.
 *
 * The absolute error is below 2^-23 for exponents from 0.001 to 1000: 2^(exponent log2 x) with the
 * polynomials of Cephes' logf and exp2f.
 */
#ifndef PLUGINS_TRANSFORMS_RANDOM_UNIT_POWER_H
#define PLUGINS_TRANSFORMS_RANDOM_UNIT_POWER_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#include "base/avx2_clone.h"
#include "base/random_normal.h"

/* 2^x for x in [-126, 127]. */
AVX2_BODY float unit_power_exp2(float x)
{
    static const float c[] = { 1.535336188e-4f, 1.339887440e-3f, 9.618437358e-3f,
                               5.550332471e-2f, 2.402264791e-1f, 6.931472029e-1f };
    int32_t whole = (int32_t)(x + 126.5f) - 126; /* the nearest integer */
    float f = x - (float)whole, p = c[0], scale;
    uint32_t bits = (uint32_t)(whole + 127) << 23;

    AVX2_UNROLL for (int i = 1; i < 6; i++)
        p = p * f + c[i];
    memcpy(&scale, &bits, sizeof scale);
    return (p * f + 1.0f) * scale;
}

/* x^exponent for x from 0 to 2 and exponents above 0; 0 where x is below FLT_MIN. */
AVX2_BODY float unit_power(float x, float exponent)
{
    float binary = random_log(x < FLT_MIN ? FLT_MIN : x) * 1.44269504f;
    float y = exponent * binary, power;

    y = y < -126.0f ? -126.0f : y;
    power = unit_power_exp2(y > 126.0f ? 126.0f : y);
    return x < FLT_MIN ? 0.0f : power;
}

#endif
