/*
 * scale_intensity - multiply by 1 + f, f uniform, as MONAI's RandScaleIntensity.
 */
#include <pons/transform.h>

#define CHANNELS_MAX 64

typedef struct scale_intensity {
    pons_reals factors;
    double probability;
    bool channel_wise;
} scale_intensity;

typedef struct record {
    bool wanted;
    uint64_t key; /* of the channels' numbers */
} record;

static const pons_option options[] = {
    PONS_REALS(scale_intensity, factors, NULL, -FLT_MAX, FLT_MAX,
               "Ends of the range of f; one number F stands for -F F."),
    PONS_REAL(scale_intensity, probability, 0.1, 0, 1, "How often a patch is changed."),
    PONS_FLAG(scale_intensity, channel_wise, no, "Draw a number for each channel."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const scale_intensity *s = config;

    if (s->factors.count < 1 || s->factors.count > 2)
        return pons_fail(err, PONS_CONFIG, "factors: found %d numbers, expected one or two",
                         s->factors.count);
    return PONS_OK;
}

static pons_status plan(const void *config, pons_draws *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    const scale_intensity *s = config;
    record *r = out;

    r->wanted = (double)pons_draw_uniform(draws) < s->probability;
    r->key = pons_draw_key(draws);
    return PONS_OK;
}

/* The number of a channel, between the ends that 'factors' gives. */
static float number_of(const scale_intensity *s, const record *r, int channel)
{
    double first = s->factors.item[0], low = -first, high = first;
    int which = s->channel_wise ? channel : 0;
    float u[4];

    if (s->factors.count == 2) {
        low = first;
        high = s->factors.item[1];
    }
    pons_voxel_uniform(r->key, (uint64_t)which / 4, u);
    return (float)(low + (high - low) * (double)u[which % 4]);
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    int64_t voxels = patch->extent[0] * patch->extent[1] * patch->extent[2];

    if (!((const record *)planned)->wanted)
        return PONS_OK;
    for (int c = 0; c < patch->channels && c < CHANNELS_MAX; c++) {
        float number = number_of(config, planned, c);
        float *x = patch->image + c;
        if (!(scope->channels >> c & 1))
            continue;
        for (int64_t v = 0; v < voxels; v++, x += patch->channels)
            *x = *x * (1.0f + number);
    }
    return PONS_OK;
}

PONS_RANDOM_TRANSFORM(scale_intensity, "1.0", "multiply by a random factor near 1", options, false,
                      sizeof(record), check, plan, apply)
