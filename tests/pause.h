/*
 * pause.h - waiting, also through signals, and for how long.
 */
#ifndef TESTS_PAUSE_H
#define TESTS_PAUSE_H

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static inline void pause_for(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

/*
 * A deadline of so many seconds on an idle machine, on this one: by what tests/patience.sh has
 * found, as Check's own. For waits that end early where nothing is wrong.
 */
static inline double patient(double seconds)
{
    const char *times = getenv("CK_TIMEOUT_MULTIPLIER");
    double factor = times != NULL ? strtod(times, NULL) : 1;

    return factor > 1 ? seconds * factor : seconds;
}

#endif
