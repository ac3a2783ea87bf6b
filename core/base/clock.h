/*
 * clock.h - seconds of the monotonic clock and of the calendar, and processor time of a thread and
 * of the process.
 */
#ifndef CORE_BASE_CLOCK_H
#define CORE_BASE_CLOCK_H

#include <time.h>

static inline double clock_seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Only differences have a meaning, and only on one machine. */
static inline double seconds_now(void) { return clock_seconds(CLOCK_MONOTONIC); }
/* Seconds since 1970. */
static inline double seconds_of_calendar(void) { return clock_seconds(CLOCK_REALTIME); }
/* Seconds that a processor has spent on the calling thread. */
static inline double seconds_of_thread(void) { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }
/* Seconds that processors have spent on all threads of the process. */
static inline double seconds_of_process(void) { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

/* Monotonic seconds as a timespec, for system calls that wait until a point in time. */
static inline struct timespec clock_timespec(double seconds)
{
    time_t whole = (time_t)seconds;

    return (struct timespec){ .tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9) };
}

#endif
