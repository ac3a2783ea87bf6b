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

/* Such a number as the system's functions take it. */
static inline struct timespec clock_at(double seconds)
{
    time_t whole = (time_t)seconds;

    return (struct timespec){ .tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9) };
}

#endif
