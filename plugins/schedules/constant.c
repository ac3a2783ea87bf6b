/*
 * constant - the base learning rate throughout.
 */
#include <pons/schedule.h>

typedef struct constant {
    char nothing;
} constant;

static const pons_option options[] = { PONS_OPTIONS_END };

static double factor(const void *config, double t, double total)
{
    return 1;
}

PONS_SCHEDULE(constant, "1.0", "the base learning rate throughout", options, factor);
