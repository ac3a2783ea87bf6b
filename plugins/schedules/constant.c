/*
 * constant - the base learning rate throughout.
 */
#include <pons/schedule.h>

static double factor(const void *config, double t, double total)
{
    return 1;
}

static const pons_schedule_operations operations = { .factor = factor };

PONS_SCHEDULE(constant, "1.0", "the base learning rate throughout", PONS_NO_OPTIONS, operations);
