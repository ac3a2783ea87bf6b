/*
 * step - the factor gamma^k. k counts the multiples of 'every' up to t, as torch's StepLR, or the
 * milestones up to t, as its MultiStepLR.
 */
#include <pons/schedule.h>

#include <math.h>

typedef struct step {
    int64_t every;
    double gamma;
    pons_integers milestones;
} step;

static const pons_option options[] = {
    PONS_INTEGER(step, every, "0", 0, 1e9, "Steps or epochs between two falls; 0: milestones."),
    PONS_INTEGERS(step, milestones, "", 1, 1e9, "Steps or epochs of the falls, ascending."),
    PONS_REAL(step, gamma, "0.1", 0, 1, "Factor of each fall."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const step *c = config;

    if ((c->every > 0) == (c->milestones.count > 0))
        return pons_option_fail(err, "every", "found %lld and %d milestones, expected one of the "
                                "two", (long long)c->every, c->milestones.count);
    for (int i = 1; i < c->milestones.count; i++)
        if (c->milestones.item[i] <= c->milestones.item[i - 1])
            return pons_option_fail(err, "milestones", "found %lld after %lld, expected ascending "
                                    "numbers", (long long)c->milestones.item[i],
                                    (long long)c->milestones.item[i - 1]);
    return PONS_OK;
}

static double factor(const void *config, double t, double total)
{
    const step *c = config;
    double falls = c->every > 0 ? floor(t / (double)c->every) : 0;

    for (int i = 0; i < c->milestones.count && t >= (double)c->milestones.item[i]; i++)
        falls++;
    return pow(c->gamma, falls);
}

static const pons_schedule_operations operations = { .check = check, .factor = factor };

PONS_SCHEDULE(step, "1.0", "falls by a factor now and then", options, operations);
