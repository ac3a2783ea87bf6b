/*
 * clock.h - seconds of the monotonic clock, and processor time of a thread and of the process.
 */
#ifndef CORE_BASE_CLOCK_H
#define CORE_BASE_CLOCK_H

#include <time.h>

/* CLOCK_MONOTONIC: only differences have a meaning, and only on one machine. */
static inline double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds that a processor has spent on the calling thread. */
static inline double seconds_of_thread(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds that processors have spent on all threads of the process. */
static inline double seconds_of_process(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Monotonic seconds as a timespec, for system calls that wait until a point in time. */
static inline struct timespec clock_timespec(double seconds)
{
    time_t whole = (time_t)seconds;

    return (struct timespec){ .tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9) };
}

#endif
