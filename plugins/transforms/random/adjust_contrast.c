/*
 * adjust_contrast - gamma correction, as MONAI's RandAdjustContrast and nnU-Net's gamma.
 *
 *     x = ((x - min) / (max - min))^gamma (max - min) + min
 *
 * With 'channel_wise' each channel has its own gamma, limits and statistics; else the changed
 * channels share them.
 */
#include "channel_draws.h"

#include "base/avx2_clone.h"
#include "unit_power.h"

enum { LANES = 64 };

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

/* x = sign (((sign x - low) scale)^gamma range + low) of 'count' values x[0], x[step], ... */
typedef struct gamma_curve {
    float sign, low, scale, range, gamma;
} gamma_curve;

typedef void curve_apply(const gamma_curve *g, float *x, int64_t count, int64_t step);

/* The curve of LANES values in place. */
AVX2_BODY void curve_lanes(const gamma_curve *g, float x[LANES])
{
    gamma_curve c = *g;

    for (int n = 0; n < LANES; n++) {
        float share = (c.sign * x[n] - c.low) * c.scale;

        x[n] = c.sign * (unit_power(share > 0 ? share : 0, c.gamma) * c.range + c.low);
    }
}

AVX2_BODY void curve_apply_body(const gamma_curve *g, float *x, int64_t count, int64_t step)
{
    float value[LANES] = { 0 };

    for (int64_t n = 0; n < count; n += LANES) {
        int filled = count - n < LANES ? (int)(count - n) : LANES;

        for (int i = 0; i < filled; i++)
            value[i] = x[(n + i) * step];
        curve_lanes(g, value);
        for (int i = 0; i < filled; i++)
            x[(n + i) * step] = value[i];
    }
}

AVX2_CLONE void curve_apply_avx2(const gamma_curve *g, float *x, int64_t count, int64_t step)
{
    curve_apply_body(g, x, count, step);
}

static void curve_apply_plain(const gamma_curve *g, float *x, int64_t count, int64_t step)
{
    curve_apply_body(g, x, count, step);
}

/* The formula above for the changed channels; 'before' are their statistics, not negated. */
static void apply_gamma(const channel_group *g, const value_stats *before, float gamma)
{
    bool inverted = g->options->invert_image;
    float range = before->high - before->low;
    gamma_curve curve = { .sign = inverted ? -1 : 1, .low = inverted ? -before->high : before->low,
                          .scale = 1 / (range + 1e-7f), .range = range, .gamma = gamma };
    curve_apply *apply = AVX2_CHOOSE(curve_apply_avx2, curve_apply_plain);

    for (int c = g->first; c < g->end; c++)
        if (group_has(g, c))
            apply(&curve, g->patch->image + c, g->voxels, g->patch->channels);
}

static void restore_stats(const channel_group *g, const value_stats *before)
{
    value_stats after = group_stats(g);
    double scale = value_stats_deviation(before) / (value_stats_deviation(&after) + 1e-8);

    for (int c = g->first; c < g->end; c++)
        if (group_has(g, c))
            channel_scale(g->patch->image + c, g->voxels, g->patch->channels,
                          (float)value_stats_mean(&after), (float)scale,
                          (float)value_stats_mean(before));
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
