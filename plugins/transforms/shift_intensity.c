/*
 * shift_intensity - add a uniform offset, as MONAI's RandShiftIntensity.
 */
#include "random_number.h"

typedef struct shift_intensity {
    pons_reals offsets;
    double probability;
    bool channel_wise;
} shift_intensity;

static const pons_option options[] = {
    PONS_REALS(shift_intensity, offsets, NULL, -FLT_MAX, FLT_MAX,
               "Ends of the range of o; one number F stands for -F F.",
               .count_min = 1, .count_max = 2),
    PONS_REAL(shift_intensity, probability, "0.1", 0, 1, "How often a patch is changed."),
    PONS_FLAG(shift_intensity, channel_wise, "no", "Draw a number for each channel."),
    PONS_OPTIONS_END
};

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    const shift_intensity *s = config;

    return random_number_plan(s->probability, draws, out);
}

static void shift(float *x, int64_t count, int64_t step, float number)
{
    if (step == 1)
        for (int64_t n = 0; n < count; n++)
            x[n] = x[n] + number;
    else
        for (int64_t n = 0; n < count; n++)
            x[n * step] = x[n * step] + number;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const shift_intensity *s = config;

    return random_number_apply(&s->offsets, s->channel_wise, scope, planned, patch, shift);
}

/* The sum with -0 leaves every value as it is, 0 and -0 too. */
static void numbers(const void *config, const pons_transform_scope *scope, const void *planned,
                    pons_sample_params *out)
{
    const shift_intensity *s = config;

    random_number_params(&s->offsets, s->channel_wise, scope, planned, -0.0f, out);
}

static pons_node *build(const void *config, const pons_patch_nodes *nodes)
{
    return pons_add(nodes->graph, nodes->image, nodes->number[0]);
}

static const pons_transform_operations operations = {
    .record_size = sizeof(random_record), .plan = plan, .apply_patch = apply, .pointwise = true,
    .number_count = 1, .numbers = numbers, .build = build
};

PONS_TRANSFORM(shift_intensity, "1.0", "add a random offset", options, operations);
