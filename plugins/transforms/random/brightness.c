/*
 * brightness - multiply each channel by a random factor and add a random number, as nnU-Net's
 * multiplicative and batchgenerators' additive brightness.
 *
 *     x = f x + a,    f uniform in 'factors', a normal with mean 'mu' and deviation 'sigma'
 */
#include "channel_draws.h"

typedef struct brightness {
    pons_reals factors;
    double mu, sigma, probability, channel_probability;
    bool channel_wise;
} brightness;

static const pons_option options[] = {
    PONS_REALS(brightness, factors, "0.75 1.25", -FLT_MAX, FLT_MAX,
               "Ends of the range of the factor; below and above 1 are equally likely.",
               .count_min = 2, .count_max = 2),
    PONS_REAL(brightness, mu, "0", -FLT_MAX, FLT_MAX, "Mean of the number that is added."),
    PONS_REAL(brightness, sigma, "0", 0, FLT_MAX,
              "Standard deviation of the number that is added."),
    PONS_REAL(brightness, probability, "0.15", 0, 1, "How often a patch is changed."),
    PONS_REAL(brightness, channel_probability, "1", 0, 1,
              "How often a channel of a changed patch is changed."),
    PONS_FLAG(brightness, channel_wise, "yes", "Draw numbers for each channel."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    return range_check("factors", &((const brightness *)config)->factors, err);
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    channel_draws_plan(((const brightness *)config)->probability, draws, out);
    return PONS_OK;
}

static float factor_of(const brightness *b, const channel_draws *r, int channel)
{
    int from = b->channel_wise ? channel : 0;

    return (float)range_around_one(&b->factors, (double)channel_draws_uniform(r, from, 1));
}

static float term_of(const brightness *b, const channel_draws *r, int channel)
{
    double normal = (double)channel_draws_normal(r, b->channel_wise ? channel : 0);

    return (float)(b->mu + b->sigma * normal);
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const brightness *b = config;
    const channel_draws *r = planned;
    int64_t voxels = patch->extent[0] * patch->extent[1] * patch->extent[2];

    for (int c = 0; c < patch->channels; c++) {
        if (channel_draws_has(r, scope, c, b->channel_probability))
            channel_scale(patch->image + c, voxels, patch->channels, 0, factor_of(b, r, c),
                          term_of(b, r, c));
    }
    return PONS_OK;
}

/* ---- on a device ----------------------------------------------------------------------------- */

enum { WANTED, FACTOR, TERM, NUMBER_COUNT };

static void numbers(const void *config, const pons_transform_scope *scope, const void *planned,
                    pons_sample_params *out)
{
    const brightness *b = config;
    const channel_draws *r = planned;

    for (int c = 0; c < out->channels; c++) {
        out->number[WANTED * out->channels + c] =
            channel_draws_has(r, scope, c, b->channel_probability);
        out->number[FACTOR * out->channels + c] = factor_of(b, r, c);
        out->number[TERM * out->channels + c] = term_of(b, r, c);
    }
}

static pons_node *build(const void *config, const pons_patch_nodes *nodes)
{
    pons_graph *g = nodes->graph;
    pons_node *product = pons_mul(g, nodes->image, nodes->number[FACTOR]);

    return pons_select(g, nodes->number[WANTED], pons_add(g, product, nodes->number[TERM]),
                       nodes->image);
}

static const pons_transform_operations operations = {
    .check = check, .record_size = sizeof(channel_draws), .plan = plan, .apply_patch = apply,
    .pointwise = true, .number_count = NUMBER_COUNT, .numbers = numbers, .build = build
};

PONS_TRANSFORM(brightness, "1.0", "multiply by a random factor and add a random number", options,
               operations);
