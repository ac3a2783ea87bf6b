/*
 * whole.h - convert a real number to an integer. A C cast is undefined for NaN and for numbers out
 * of range, so numbers from files and options are converted here.
 */
#ifndef CORE_BASE_WHOLE_H
#define CORE_BASE_WHOLE_H

#include <stdint.h>

/* x without its fraction, clamped to low .. high (at most 2^53); 'low' for NaN. */
static inline int64_t whole_within(double x, int64_t low, int64_t high)
{
    if (!(x > (double)low))
        return low;
    return x < (double)high ? (int64_t)x : high;
}

#endif
