/*
 * exponential - the factor gamma^t, as torch's ExponentialLR, or end_factor^(t / (total - 1)),
 * which reaches end_factor in the last step or epoch.
 */
#include <pons/schedule.h>

#include <math.h>

typedef struct exponential {
    double gamma, end_factor;
} exponential;

static const pons_option options[] = {
    PONS_REAL(exponential, gamma, "0", 0, 1, "Factor of each step or epoch; 0: end_factor."),
    PONS_REAL(exponential, end_factor, "0", 0, DBL_MAX, "Factor at the end; 0: gamma."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const exponential *c = config;

    if ((c->gamma > 0) == (c->end_factor > 0))
        return pons_option_fail(err, "gamma", "found %g with end_factor %g, expected one of the "
                                "two above 0", c->gamma, c->end_factor);
    return PONS_OK;
}

static double factor(const void *config, double t, double total)
{
    const exponential *c = config;

    if (c->gamma > 0)
        return pow(c->gamma, t);
    return pow(c->end_factor, t / fmax(1, total - 1));
}

static const pons_schedule_operations operations = { .check = check, .factor = factor };

PONS_SCHEDULE(exponential, "1.0", "falls by an equal share in each step", options, operations);
