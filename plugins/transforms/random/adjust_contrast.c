/*
 * adjust_contrast - gamma correction, as MONAI's RandAdjustContrast and nnU-Net's gamma.
 *
 *     x = ((x - min) / (max - min))^gamma (max - min) + min
 *
 * With 'channel_wise' each channel has its own gamma, limits and statistics; else the changed
 * channels share them.
 */
#include "channel_draws.h"

#include <math.h>

typedef struct adjust_contrast {
    pons_reals gamma;
    double probability, channel_probability;
    bool invert_image, retain_stats, channel_wise, around_one;
} adjust_contrast;

static const pons_option options[] = {
    PONS_REALS(adjust_contrast, gamma, "0.5 4.5", 0.001, 1000, "Ends of the range of the exponent.",
               .count_min = 2, .count_max = 2),
    PONS_FLAG(adjust_contrast, around_one, "no",
              "Draw exponents below and above 1 equally often, as nnU-Net."),
    PONS_FLAG(adjust_contrast, invert_image, "no", "Negate the values before and after."),
    PONS_FLAG(adjust_contrast, retain_stats, "no",
              "Restore mean and standard deviation afterwards."),
    PONS_REAL(adjust_contrast, probability, "0.1", 0, 1, "How often a patch is changed."),
    PONS_REAL(adjust_contrast, channel_probability, "1", 0, 1,
              "How often a channel of a changed patch is changed."),
    PONS_FLAG(adjust_contrast, channel_wise, "no",
              "Draw an exponent for each channel, and take its own limits and statistics."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    return range_check("gamma", &((const adjust_contrast *)config)->gamma, err);
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    channel_draws_plan(((const adjust_contrast *)config)->probability, draws, out);
    return PONS_OK;
}

/* Channels that share limits and statistics. */
typedef struct channel_group {
    const adjust_contrast *options;
    const channel_draws *record;
    const pons_transform_scope *scope;
    pons_patch *patch;
    int first, end;           /* channels first .. end - 1, as far as drawn                       */
    int64_t voxels;
} channel_group;

static bool group_has(const channel_group *g, int channel)
{
    return channel_draws_has(g->record, g->scope, channel, g->options->channel_probability);
}

static value_stats group_stats(const channel_group *g)
{
    value_stats s = value_stats_none(g->patch->image[g->first]);

    for (int c = g->first; c < g->end; c++)
        if (group_has(g, c))
            value_stats_add(&s, g->patch->image + c, g->voxels, g->patch->channels);
    return s;
}

/* The formula above for the changed channels; 'before' are their statistics, not negated. */
static void apply_gamma(const channel_group *g, const value_stats *before, float gamma)
{
    float sign = g->options->invert_image ? -1.0f : 1.0f;
    float low = g->options->invert_image ? -before->high : before->low;
    float range = before->high - before->low;
    float scale = 1 / (range + 1e-7f);
    int channels = g->patch->channels;

    for (int c = g->first; c < g->end; c++) {
        float *x = g->patch->image + c;

        if (!group_has(g, c))
            continue;
        for (int64_t n = 0; n < g->voxels; n++) {
            float share = fmaxf(0, (sign * x[n * channels] - low) * scale);

            x[n * channels] = sign * (powf(share, gamma) * range + low);
        }
    }
}

static void restore_stats(const channel_group *g, const value_stats *before)
{
    value_stats after = group_stats(g);
    double scale = value_stats_deviation(before) / (value_stats_deviation(&after) + 1e-8);
    float mean = (float)value_stats_mean(&after), factor = (float)scale;
    float target = (float)value_stats_mean(before);
    int channels = g->patch->channels;

    for (int c = g->first; c < g->end; c++) {
        float *x = g->patch->image + c;

        if (!group_has(g, c))
            continue;
        for (int64_t n = 0; n < g->voxels; n++)
            x[n * channels] = (x[n * channels] - mean) * factor + target;
    }
}

static void change_group(const channel_group *g)
{
    const adjust_contrast *s = g->options;
    double share = (double)channel_draws_uniform(g->record, g->first, 1);
    value_stats before = group_stats(g);

    if (before.count == 0)
        return;
    apply_gamma(g, &before, (float)(s->around_one ? range_around_one(&s->gamma, share)
                                                  : range_at(&s->gamma, share)));
    if (s->retain_stats)
        restore_stats(g, &before);
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const adjust_contrast *s = config;
    channel_group g = { .options = s, .record = planned, .scope = scope, .patch = patch,
                        .end = patch->channels,
                        .voxels = patch->extent[0] * patch->extent[1] * patch->extent[2] };

    if (!s->channel_wise)
        change_group(&g);
    for (int c = 0; c < patch->channels && s->channel_wise; c++) {
        g.first = c;
        g.end = c + 1;
        change_group(&g);
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .record_size = sizeof(channel_draws), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(adjust_contrast, "1.0", "raise values to a random power", options, operations);
