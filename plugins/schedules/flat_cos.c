/*
 * flat_cos - the schedule of fastai's fit_flat_cos.
 *
 * The base learning rate holds for the share 'flat' of the run. Half a cosine wave then takes it
 * down to 1 / final_divisor.
 */
#include <pons/schedule.h>

#include <math.h>

typedef struct flat_cos {
    double flat, final_divisor;
} flat_cos;

static const pons_option options[] = {
    PONS_REAL(flat_cos, flat, "0.75", 0, 1, "Share of the run at the full rate."),
    PONS_REAL(flat_cos, final_divisor, "1e5", 1, DBL_MAX, "The rate ends at this fraction."),
    PONS_OPTIONS_END
};

static double factor(const void *config, double t, double total)
{
    const flat_cos *c = config;
    double done = t / total, end = 1 / c->final_divisor;

    if (done < c->flat || c->flat == 1)
        return 1;
    return end + (1 + cos(M_PI * (done - c->flat) / (1 - c->flat))) * (1 - end) / 2;
}

static const pons_schedule_operations operations = { .factor = factor };

PONS_SCHEDULE(flat_cos, "1.0", "flat, then half a cosine wave", options, operations);
