/*
 * reference_number.c - convert single numbers from any type to double and back.
 */
#include <math.h>
#include <string.h>

#include "graph/reference/reference_internal.h"

static double bf16_to_double(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Round to nearest even; NaN stays NaN. */
static uint16_t bf16_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double f16_to_double(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);

    if (exponent == 31)
        size = fraction != 0 ? NAN : INFINITY;
    return half >> 15 ? -size : size;
}

static uint16_t f16_of(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    int exponent;

    if (value != value)
        return 0x7e00;
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-14)
        return sign | (uint16_t)rint(ldexp(size, 24)); /* 1024 is the smallest normal number */
    frexp(size, &exponent);
    return sign |
           (uint16_t)(((exponent + 14) << 10) + (int)rint(ldexp(size, 11 - exponent)) - 1024);
}

static double clamped_number(double value, double low, double high)
{
    if (value != value)
        return 0;
    return value < low ? low : value > high ? high : trunc(value);
}

double number_load(pons_type type, const void *memory, int64_t index)
{
    switch (type) {
    case PONS_F32: return ((const float *)memory)[index];
    case PONS_F64: return ((const double *)memory)[index];
    case PONS_BF16: return bf16_to_double(((const uint16_t *)memory)[index]);
    case PONS_F16: return f16_to_double(((const uint16_t *)memory)[index]);
    case PONS_U8: return ((const uint8_t *)memory)[index];
    case PONS_I32: return ((const int32_t *)memory)[index];
    }
    return 0;
}

void number_store(pons_type type, void *memory, int64_t index, double value)
{
    switch (type) {
    case PONS_F32: ((float *)memory)[index] = (float)value; break;
    case PONS_F64: ((double *)memory)[index] = value; break;
    case PONS_BF16: ((uint16_t *)memory)[index] = bf16_of((float)value); break;
    case PONS_F16: ((uint16_t *)memory)[index] = f16_of(value); break;
    case PONS_U8: ((uint8_t *)memory)[index] = (uint8_t)clamped_number(value, 0, 255); break;
    case PONS_I32:
        ((int32_t *)memory)[index] = (int32_t)clamped_number(value, INT32_MIN, INT32_MAX);
        break;
    }
}
