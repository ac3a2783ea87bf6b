/*
 * pause.c - see pause.h.
 */
#include "support/pause.h"

void pause_for(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

double deadline_scaled(double seconds)
{
    const char *times = getenv("CK_TIMEOUT_MULTIPLIER");
    double factor = times != NULL ? strtod(times, NULL) : 1;

    return factor > 1 ? seconds * factor : seconds;
}
