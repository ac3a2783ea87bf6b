/*
 * slow_step.c - a schedule that takes a given time of each step, before its patches are asked for,
 * and of no processor.
 */
#include <pons/schedule.h>

#include <unistd.h>

typedef struct slow_step {
    double seconds;
} slow_step;

static const pons_option options[] = {
    PONS_REAL(slow_step, seconds, 0, 0, 1, "Of a step."),
    PONS_OPTIONS_END
};

static double factor(const void *config, double t, double total)
{
    usleep((useconds_t)(1e6 * ((const slow_step *)config)->seconds));
    return 1;
}

PONS_SCHEDULE(slow_step, "1.0", "takes its time", options, factor)
