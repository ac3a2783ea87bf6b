/*
 * linear - the factor along a line from start_factor to end_factor, then constant, as torch's
 * LinearLR.
 */
#include <pons/schedule.h>

#include <math.h>

typedef struct linear {
    double start_factor, end_factor;
    int64_t over;
} linear;

static const pons_option options[] = {
    PONS_REAL(linear, start_factor, "1", 0, DBL_MAX, "Factor of the first step or epoch."),
    PONS_REAL(linear, end_factor, "0", 0, DBL_MAX, "Factor at the end of the line."),
    PONS_INTEGER(linear, over, "0", 0, 1e9, "Steps or epochs of the line; 0: up to the last."),
    PONS_OPTIONS_END
};

static double factor(const void *config, double t, double total)
{
    const linear *c = config;
    double over = c->over > 0 ? (double)c->over : fmax(1, total - 1), done = fmin(1, t / over);

    return c->start_factor + done * (c->end_factor - c->start_factor);
}

static const pons_schedule_operations operations = { .factor = factor };

PONS_SCHEDULE(linear, "1.0", "along a line", options, operations);
