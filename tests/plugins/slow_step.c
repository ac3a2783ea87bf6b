/*
 * slow_step.c - a schedule that delays each step by a given time, before its patches are requested
 * and without CPU load.
 */
#include <pons/schedule.h>

#include <unistd.h>

typedef struct slow_step {
    double seconds;
} slow_step;

static const pons_option options[] = {
    PONS_REAL(slow_step, seconds, "0", 0, 60, "Of a step."),
    PONS_OPTIONS_END
};

static double factor(const void *config, double t, double total)
{
    usleep((useconds_t)(1e6 * ((const slow_step *)config)->seconds));
    return 1;
}

static const pons_schedule_operations operations = { .factor = factor };

PONS_SCHEDULE(slow_step, "1.0", "takes its time", options, operations);
