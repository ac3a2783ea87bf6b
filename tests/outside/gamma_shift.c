/*
 * gamma_shift - a random transform: values are raised to a power that is drawn for each patch.
 * Built outside the source tree.
 */
#include <pons/transform.h>

#include <math.h>

typedef struct gamma_shift {
    double low, high, probability;
} gamma_shift;

static const pons_option options[] = {
    PONS_REAL(gamma_shift, low, "0.7", 0.01, 1, "Smallest exponent."),
    PONS_REAL(gamma_shift, high, "1.5", 1, 100, "Largest exponent."),
    PONS_REAL(gamma_shift, probability, "0.5", 0, 1, "Share of the patches that are changed."),
    PONS_OPTIONS_END
};

/* The parameter of a patch; a record begins as zero, which changes nothing. */
typedef struct record {
    double added; /* added to the exponent 1                                                      */
} record;

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    const gamma_shift *c = config;
    record *r = out;

    if (pons_draw_uniform(draws) < c->probability)
        r->added = pons_draw_range(draws, c->low, c->high) - 1;
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *in,
                         pons_patch *patch, pons_error *err)
{
    int64_t voxels = patch->extent[0] * patch->extent[1] * patch->extent[2];
    const record *r = in;

    for (int64_t i = 0; i < voxels && r->added != 0; i++) {
        for (int c = 0; c < patch->channels; c++) {
            float *value = &patch->image[i * patch->channels + c];
            if (pons_scope_has(scope, c))
                *value = copysignf(powf(fabsf(*value), (float)(1 + r->added)), *value);
        }
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .record_size = sizeof(record), .plan = plan, .apply_patch = apply, .pointwise = true
};

PONS_TRANSFORM(gamma_shift, "1.0", "powers of values", options, operations);
