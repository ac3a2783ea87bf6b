/*
 * channel_dropout - blank whole channels, so that a network learns to do without a modality.
 *
 * At least one channel of the scope stays: if all were drawn, the one with the largest number.
 */
#include "channel_draws.h"

typedef struct channel_dropout {
    double probability, channel_probability, fill_value;
} channel_dropout;

static const pons_option options[] = {
    PONS_REAL(channel_dropout, probability, "0.1", 0, 1, "How often a patch loses channels."),
    PONS_REAL(channel_dropout, channel_probability, "0.5", 0, 1,
              "How often a channel of such a patch is blanked; one of them always stays."),
    PONS_REAL(channel_dropout, fill_value, "0", -FLT_MAX, FLT_MAX, "Value of a blanked channel."),
    PONS_OPTIONS_END
};

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    channel_draws_plan(((const channel_dropout *)config)->probability, draws, out);
    return PONS_OK;
}

/* The channel of the scope with the largest number. */
static int kept_channel(const channel_draws *r, const pons_transform_scope *scope, int channels)
{
    float largest = -1;
    int kept = -1;

    for (int c = 0; c < channels; c++) {
        float u = pons_scope_has(scope, c) ? channel_draws_uniform(r, c, 0) : -1;

        if (u > largest) {
            largest = u;
            kept = c;
        }
    }
    return kept;
}

static bool is_dropped(const channel_dropout *d, const channel_draws *r,
                       const pons_transform_scope *scope, int kept, int channel)
{
    return channel != kept && channel_draws_has(r, scope, channel, d->channel_probability);
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const channel_dropout *d = config;
    const channel_draws *r = planned;
    int64_t voxels = patch->extent[0] * patch->extent[1] * patch->extent[2];
    int kept = r->wanted ? kept_channel(r, scope, patch->channels) : -1;

    for (int c = 0; c < patch->channels && r->wanted; c++) {
        if (!is_dropped(d, r, scope, kept, c))
            continue;
        for (int64_t n = 0; n < voxels; n++)
            patch->image[n * patch->channels + c] = (float)d->fill_value;
    }
    return PONS_OK;
}

/* ---- on a device ----------------------------------------------------------------------------- */

enum { DROPPED, FILL, NUMBER_COUNT };

static void numbers(const void *config, const pons_transform_scope *scope, const void *planned,
                    pons_sample_params *out)
{
    const channel_dropout *d = config;
    const channel_draws *r = planned;
    int kept = kept_channel(r, scope, out->channels);

    for (int c = 0; c < out->channels; c++) {
        out->number[DROPPED * out->channels + c] = is_dropped(d, r, scope, kept, c);
        out->number[FILL * out->channels + c] = (float)d->fill_value;
    }
}

static pons_node *build(const void *config, const pons_patch_nodes *nodes)
{
    return pons_select(nodes->graph, nodes->number[DROPPED], nodes->number[FILL], nodes->image);
}

static const pons_transform_operations operations = {
    .record_size = sizeof(channel_draws), .plan = plan, .apply_patch = apply, .pointwise = true,
    .number_count = NUMBER_COUNT, .numbers = numbers, .build = build
};

PONS_TRANSFORM(channel_dropout, "1.0", "blank random channels", options, operations);
