/*
 * channel_draws.h - the random numbers of each channel of a patch, and statistics of channels.
 */
#ifndef PLUGINS_TRANSFORMS_RANDOM_CHANNEL_DRAWS_H
#define PLUGINS_TRANSFORMS_RANDOM_CHANNEL_DRAWS_H

#include <pons/transform.h>

/* The record of a transform that draws numbers for channels. */
typedef struct channel_draws {
    bool wanted;
    uint64_t key;             /* key of the channels' numbers                                     */
} channel_draws;

void channel_draws_plan(double probability, pons_rng *draws, channel_draws *out);
/* Number 'which', 0 to 7, of a channel: uniform in [0, 1). */
float channel_draws_uniform(const channel_draws *r, int channel, int which);
/* The normal number of a channel. */
float channel_draws_normal(const channel_draws *r, int channel);
/* Whether a channel is in the scope and drawn with 'probability'. Number 0 decides. */
bool channel_draws_has(const channel_draws *r, const pons_transform_scope *scope, int channel,
                       double probability);

/* PONS_CONFIG unless the first of two ends of an option's range is at most the second. */
pons_status range_check(const char *name, const pons_reals *range, pons_error *err);
/* The number at 'share' of a range. */
double range_at(const pons_reals *range, double share);
/* The same of a range that is read as two halves of equal probability, below and above 1. */
double range_around_one(const pons_reals *range, double share);

/* Count, sums and limits of values. */
typedef struct value_stats {
    int64_t count;
    double sum, square;       /* of the differences to 'origin'                                   */
    double origin;
    float low, high;
} value_stats;

/* Statistics without values; 'origin' is some number near them. */
value_stats value_stats_none(float origin);
/* Add 'count' values x[0], x[step], ... */
void value_stats_add(value_stats *s, const float *x, int64_t count, int64_t step);
double value_stats_mean(const value_stats *s);
/* Unbiased standard deviation; 0 of a single value. */
double value_stats_deviation(const value_stats *s);

/* x = (x - centre) factor + term of 'count' values x[0], x[step], ... */
void channel_scale(float *x, int64_t count, int64_t step, float centre, float factor, float term);

#endif
