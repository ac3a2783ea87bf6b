/*
 * late - a schedule for tests whose factor falls below 0 at the end of 1000 steps, and of 8.
 */
#include <pons/schedule.h>

static const pons_option options[] = { PONS_OPTIONS_END };

typedef struct late {
    int none;
} late;

static double factor(const void *config, double t, double total)
{
    return total == 8 ? 3.5 - t : total < 1000 ? 1 : 0.99 - t / total;
}

PONS_SCHEDULE(late, "1.0", "falls below 0 in the end", options, factor)
