/*
 * cosine - the factor m + (1 - m) (1 + cos(2 pi cycles t / total)) / 2 with m = minimum_factor, but
 * at least end_factor (Loshchilov and Hutter 2017, arXiv:1608.03983, without restarts).
 */
#include <pons/schedule.h>

#include <math.h>

typedef struct cosine {
    double cycles, minimum_factor, end_factor;
} cosine;

static const pons_option options[] = {
    PONS_REAL(cosine, cycles, "0.5", 0, 1000, "Waves in the run; 0.5 falls from 1 to 0 once."),
    PONS_REAL(cosine, minimum_factor, "0", 0, 1, "Factor in the wave's trough."),
    PONS_REAL(cosine, end_factor, "0", 0, 1, "The factor never falls below it."),
    PONS_OPTIONS_END
};

static double factor(const void *config, double t, double total)
{
    const cosine *c = config;
    double wave = (1 + cos(2 * M_PI * c->cycles * t / fmax(1, total))) / 2;
    return fmax(c->end_factor, c->minimum_factor + (1 - c->minimum_factor) * wave);
}

static const pons_schedule_operations operations = { .factor = factor };

PONS_SCHEDULE(cosine, "1.0", "half a cosine wave", options, operations);
