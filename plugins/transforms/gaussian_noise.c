/*
 * gaussian_noise - add normal noise to every value, as MONAI's RandGaussianNoise: with 'sample_std'
 * its deviation is itself drawn, uniform between 0 and 'std'.
 */
#include <pons/transform.h>

typedef struct gaussian_noise {
    double probability, mean, std;
    bool sample_std;
} gaussian_noise;

typedef struct record {
    bool wanted;
    float deviation;
    uint64_t key;
} record;

static const pons_option options[] = {
    PONS_REAL(gaussian_noise, probability, 0.1, 0, 1, "How often a patch gets noise."),
    PONS_REAL(gaussian_noise, mean, 0, -FLT_MAX, FLT_MAX, "Mean of the noise."),
    PONS_REAL(gaussian_noise, std, 0.1, 0, FLT_MAX, "Standard deviation, or its upper end."),
    PONS_FLAG(gaussian_noise, sample_std, yes, "Draw the deviation between 0 and std."),
    PONS_OPTIONS_END
};

static pons_status plan(const void *config, pons_draws *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    const gaussian_noise *g = config;
    record *r = out;
    float share;

    r->wanted = (double)pons_draw_uniform(draws) < g->probability;
    share = pons_draw_uniform(draws);
    r->deviation = (float)g->std * (g->sample_std ? share : 1.0f);
    r->key = pons_draw_key(draws);
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const gaussian_noise *g = config;
    const record *r = planned;
    int64_t count = patch->extent[0] * patch->extent[1] * patch->extent[2] * patch->channels;
    float mean = (float)g->mean, normal[4];

    for (int64_t i = 0; r->wanted && i < count; i++) {
        int64_t channel = i % patch->channels;
        if (i % 4 == 0)
            pons_voxel_normal(r->key, (uint64_t)i / 4, normal);
        if (channel > 63 || scope->channels >> channel & 1)
            patch->image[i] += mean + r->deviation * normal[i % 4];
    }
    return PONS_OK;
}

PONS_RANDOM_TRANSFORM(gaussian_noise, "1.0", "add normal noise", options, false, sizeof(record),
                      NULL, plan, apply)
