/*
 * pause.h - waiting, also through signals.
 */
#ifndef TESTS_PAUSE_H
#define TESTS_PAUSE_H

#include <errno.h>
#include <time.h>

static inline void pause_for(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

#endif
