/*
 * clock.h - seconds of the clock that nobody sets.
 */
#ifndef CORE_BASE_CLOCK_H
#define CORE_BASE_CLOCK_H

#include <time.h>

/* Of CLOCK_MONOTONIC: only differences mean something, and only on one machine. */
static inline double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
