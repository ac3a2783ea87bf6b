/*
 * contrast - widen or narrow the values of each channel around their mean, as nnU-Net.
 *
 *     x = (x - mean) f + mean,    between the smallest and the largest value of before
 */
#include "channel_draws.h"

#include <math.h>

typedef struct contrast {
    pons_reals factors;
    double probability, channel_probability;
    bool channel_wise, preserve_range;
} contrast;

static const pons_option options[] = {
    PONS_REALS(contrast, factors, "0.75 1.25", 0, FLT_MAX,
               "Ends of the range of the factor; below and above 1 are equally likely.",
               .count_min = 2, .count_max = 2),
    PONS_FLAG(contrast, preserve_range, "yes",
              "Clip at the smallest and the largest value that the channel had."),
    PONS_REAL(contrast, probability, "0.15", 0, 1, "How often a patch is changed."),
    PONS_REAL(contrast, channel_probability, "1", 0, 1,
              "How often a channel of a changed patch is changed."),
    PONS_FLAG(contrast, channel_wise, "yes", "Draw a factor for each channel."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    return range_check("factors", &((const contrast *)config)->factors, err);
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    channel_draws_plan(((const contrast *)config)->probability, draws, out);
    return PONS_OK;
}

static void change_channel(const contrast *s, float factor, float *x, int64_t count, int64_t step)
{
    value_stats stats = value_stats_none(x[0]);
    float mean, low, high;

    value_stats_add(&stats, x, count, step);
    mean = (float)value_stats_mean(&stats);
    low = s->preserve_range ? stats.low : -INFINITY;
    high = s->preserve_range ? stats.high : INFINITY;
    for (int64_t n = 0; n < count; n++) {
        float y = (x[n * step] - mean) * factor + mean;

        y = y < low ? low : y;
        x[n * step] = y > high ? high : y;
    }
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const contrast *s = config;
    const channel_draws *r = planned;
    int64_t voxels = patch->extent[0] * patch->extent[1] * patch->extent[2];

    for (int c = 0; c < patch->channels; c++) {
        int from = s->channel_wise ? c : 0;

        if (channel_draws_has(r, scope, c, s->channel_probability))
            change_channel(s, (float)range_around_one(&s->factors,
                                                      (double)channel_draws_uniform(r, from, 1)),
                           patch->image + c, voxels, patch->channels);
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .record_size = sizeof(channel_draws), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(contrast, "1.0", "change the contrast around the mean", options, operations);
