/*
 * whole.h - a real number as a whole one. C leaves open what a cast gives where the number does not
 * fit, or is none: casts of numbers that files or options reach go through here.
 */
#ifndef CORE_BASE_WHOLE_H
#define CORE_BASE_WHOLE_H

#include <stdint.h>

/* x without its fraction; 'low' and 'high', at most 2^53, for what lies beyond, 'low' for NaN. */
static inline int64_t whole_within(double x, int64_t low, int64_t high)
{
    if (!(x > (double)low))
        return low;
    return x < (double)high ? (int64_t)x : high;
}

#endif
