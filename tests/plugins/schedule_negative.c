/*
 * schedule_negative - a schedule for tests whose factor falls below 0 at the end of 1000 steps, and
 * at the end of 8.
 */
#include <pons/schedule.h>

static double factor(const void *config, double t, double total)
{
    return total == 8 ? 3.5 - t : total < 1000 ? 1 : 0.99 - t / total;
}

static const pons_schedule_operations operations = { .factor = factor };

PONS_SCHEDULE(schedule_negative, "1.0", "falls below 0 in the end", PONS_NO_OPTIONS, operations);
