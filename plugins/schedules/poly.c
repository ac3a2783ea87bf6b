/*
 * poly - the factor (1 - t / total)^power, the schedule of nnU-Net.
 */
#include <pons/schedule.h>

#include <math.h>

typedef struct poly {
    double power;
} poly;

static const pons_option options[] = {
    PONS_REAL(poly, power, "0.9", 0, 100, "Exponent; 1 falls along a line."),
    PONS_OPTIONS_END
};

static double factor(const void *config, double t, double total)
{
    const poly *c = config;
    return t < total ? pow(1 - t / total, c->power) : 0;
}

static const pons_schedule_operations operations = { .factor = factor };

PONS_SCHEDULE(poly, "1.0", "a power of what is left of the run", options, operations);
