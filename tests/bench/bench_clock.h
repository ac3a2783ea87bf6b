/*
 * bench_clock.h - the clock of the programs that time kernels.
 */
#ifndef TESTS_BENCH_CLOCK_H
#define TESTS_BENCH_CLOCK_H

#include "base/clock.h"

#include <time.h>

/*
 * Seconds of a clock. One thread is measured by its CPU time, which other work on the machine
 * disturbs less.
 */
static inline double bench_seconds(int threads)
{
    struct timespec t;

    if (threads > 1)
        return seconds_now();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
