/*
 * gaussian_noise - add normal noise to every value, as MONAI's RandGaussianNoise.
 *
 * With 'sample_std' the deviation is drawn, uniform between 0 and 'std'.
 */
#include <pons/transform.h>

enum { BLOCK = 1024 };

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
    PONS_REAL(gaussian_noise, probability, "0.1", 0, 1, "How often a patch gets noise."),
    PONS_REAL(gaussian_noise, mean, "0", -FLT_MAX, FLT_MAX, "Mean of the noise."),
    PONS_REAL(gaussian_noise, std, "0.1", 0, FLT_MAX, "Standard deviation, or its upper end."),
    PONS_FLAG(gaussian_noise, sample_std, "yes", "Draw the deviation between 0 and std."),
    PONS_OPTIONS_END
};

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
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

/* Add noise to 'count' values of a part of a patch from 'first' on. Value 0 is of channel 0. */
static void add(const gaussian_noise *g, const record *r, const pons_transform_scope *scope,
                int channels, int64_t first, int64_t count, const float *normal, float *x)
{
    float mean = (float)g->mean, deviation = r->deviation;

    if (pons_scope_has_all(scope, channels)) {
        for (int64_t i = 0; i < count; i++)
            x[i] += mean + deviation * normal[i];
        return;
    }
    for (int64_t i = 0; i < count; i++)
        if (pons_scope_has(scope, (int)((first + i) % channels)))
            x[i] += mean + deviation * normal[i];
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const gaussian_noise *g = config;
    const record *r = planned;
    int64_t count = patch->extent[0] * patch->extent[1] * patch->extent[2] * patch->channels;
    int64_t first = patch->first * patch->channels;

    for (int64_t done = 0; r->wanted && done < count; done += BLOCK) {
        int64_t block = count - done < BLOCK ? count - done : BLOCK;
        float normal[BLOCK];

        pons_voxel_normals(r->key, (uint64_t)(first + done), block, normal);
        add(g, r, scope, patch->channels, done, block, normal, patch->image + done);
    }
    return PONS_OK;
}

/* ---- on a device ----------------------------------------------------------------------------- */

enum { WANTED, MEAN, DEVIATION, NUMBER_COUNT };

static void numbers(const void *config, const pons_transform_scope *scope, const void *planned,
                    pons_sample_params *out)
{
    const gaussian_noise *g = config;
    const record *r = planned;

    for (int c = 0; c < out->channels; c++) {
        bool wanted = r->wanted && pons_scope_has(scope, c);

        out->number[WANTED * out->channels + c] = wanted;
        out->number[MEAN * out->channels + c] = (float)g->mean;
        out->number[DEVIATION * out->channels + c] = r->deviation;
    }
    out->normal = r->wanted;
    out->key = r->key;
}

static pons_node *build(const void *config, const pons_patch_nodes *nodes)
{
    pons_graph *g = nodes->graph;
    pons_node *noise = pons_mul(g, nodes->number[DEVIATION], nodes->normal);
    pons_node *noisy = pons_add(g, nodes->image, pons_add(g, nodes->number[MEAN], noise));

    return pons_select(g, nodes->number[WANTED], noisy, nodes->image);
}

static const pons_transform_operations operations = {
    .record_size = sizeof(record), .plan = plan, .apply_patch = apply, .pointwise = true,
    .number_count = NUMBER_COUNT, .voxel_normals = true, .numbers = numbers, .build = build
};

PONS_TRANSFORM(gaussian_noise, "1.0", "add normal noise", options, operations);
