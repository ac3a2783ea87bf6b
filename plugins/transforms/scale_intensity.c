/*
 * scale_intensity - multiply by 1 + f with a uniform f, as MONAI's RandScaleIntensity.
 */
#include "random_number.h"

typedef struct scale_intensity {
    pons_reals factors;
    double probability;
    bool channel_wise;
} scale_intensity;

static const pons_option options[] = {
    PONS_REALS(scale_intensity, factors, NULL, -FLT_MAX, FLT_MAX,
               "Ends of the range of f; one number F stands for -F F.",
               .count_min = 1, .count_max = 2),
    PONS_REAL(scale_intensity, probability, "0.1", 0, 1, "How often a patch is changed."),
    PONS_FLAG(scale_intensity, channel_wise, "no", "Draw a number for each channel."),
    PONS_OPTIONS_END
};

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    const scale_intensity *s = config;

    return random_number_plan(s->probability, draws, out);
}

static void multiply(float *x, int64_t count, int64_t step, float number)
{
    float factor = 1.0f + number;

    if (step == 1)
        for (int64_t n = 0; n < count; n++)
            x[n] = x[n] * factor;
    else
        for (int64_t n = 0; n < count; n++)
            x[n * step] = x[n * step] * factor;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const scale_intensity *s = config;

    return random_number_apply(&s->factors, s->channel_wise, scope, planned, patch, multiply);
}

static void numbers(const void *config, const pons_transform_scope *scope, const void *planned,
                    pons_sample_params *out)
{
    const scale_intensity *s = config;

    random_number_params(&s->factors, s->channel_wise, scope, planned, 0.0f, out);
}

static pons_node *build(const void *config, const pons_patch_nodes *nodes)
{
    pons_graph *g = nodes->graph;

    return pons_mul(g, nodes->image, pons_add(g, pons_scalar(g, 1), nodes->number[0]));
}

static const pons_transform_operations operations = {
    .record_size = sizeof(random_record), .plan = plan, .apply_patch = apply, .pointwise = true,
    .number_count = 1, .numbers = numbers, .build = build
};

PONS_TRANSFORM(scale_intensity, "1.0", "multiply by a random factor near 1", options, operations);
