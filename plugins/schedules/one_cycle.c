/*
 * one_cycle - the schedule of fastai's fit_one_cycle (Smith 2018, arXiv:1803.09820).
 *
 * Half a cosine wave takes the rate from 1 / divisor up to 1 in the share 'rise' of the run.
 * Another one takes it down to 1 / final_divisor.
 */
#include <pons/schedule.h>

#include <math.h>

typedef struct one_cycle {
    double rise, divisor, final_divisor;
} one_cycle;

static const pons_option options[] = {
    PONS_REAL(one_cycle, rise, "0.25", 0, 1, "Share of the run in which the rate rises."),
    PONS_REAL(one_cycle, divisor, "25", 1, DBL_MAX, "The rate begins at this fraction."),
    PONS_REAL(one_cycle, final_divisor, "1e5", 1, DBL_MAX, "The rate ends at this fraction."),
    PONS_OPTIONS_END
};

/* Half a cosine wave from 'start' to 'end', of which the share 'done' is over. */
static double wave(double start, double end, double done)
{
    return end + (1 + cos(M_PI * done)) * (start - end) / 2;
}

static double factor(const void *config, double t, double total)
{
    const one_cycle *c = config;
    double done = t / total;

    if (done < c->rise)
        return wave(1 / c->divisor, 1, done / c->rise);
    return c->rise == 1 ? 1 : wave(1, 1 / c->final_divisor, (done - c->rise) / (1 - c->rise));
}

static const pons_schedule_operations operations = { .factor = factor };

PONS_SCHEDULE(one_cycle, "1.0", "up, then down, by cosine waves", options, operations);
