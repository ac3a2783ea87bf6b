/*
 * gaussian_sharpen - sharpen a smoothed patch, as MONAI's RandGaussianSharpen.
 *
 *     b = smooth(x, sigma1),    x = b + alpha (b - smooth(b, sigma2))
 */
#include "channel_draws.h"
#include "gaussian_filter.h"

typedef struct gaussian_sharpen {
    pons_reals sigma1_x, sigma1_y, sigma1_z, sigma2_x, sigma2_y, sigma2_z, alpha;
    double probability;
    int approx;
} gaussian_sharpen;

#define SIGMA1(MEMBER, AXIS)                                                                      \
    PONS_REALS(gaussian_sharpen, MEMBER, "0.5 1", 0, GAUSSIAN_SIGMA_MAX,                          \
               "Ends of the range of the first deviation along " AXIS ", in voxels.",             \
               .count_min = 2, .count_max = 2)
#define SIGMA2(MEMBER, AXIS)                                                                      \
    PONS_REALS(gaussian_sharpen, MEMBER, "0.5", 0, GAUSSIAN_SIGMA_MAX,                            \
               "Ends of the range of the second deviation along " AXIS "; one number: up to the " \
               "first deviation.", .count_min = 1, .count_max = 2)

static const pons_option options[] = {
    SIGMA1(sigma1_x, "i"), SIGMA1(sigma1_y, "j"), SIGMA1(sigma1_z, "k"),
    SIGMA2(sigma2_x, "i"), SIGMA2(sigma2_y, "j"), SIGMA2(sigma2_z, "k"),
    PONS_REALS(gaussian_sharpen, alpha, "10 30", 0, 1000, "Ends of the range of the weight.",
               .count_min = 2, .count_max = 2),
    PONS_CHOICE(gaussian_sharpen, approx, "erf", gaussian_approx_words,
                "Weights: erf, integrals over voxels up to 4 deviations, or sampled, values at the "
                "voxels up to 3."),
    PONS_REAL(gaussian_sharpen, probability, "0.1", 0, 1, "How often a patch is sharpened."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const gaussian_sharpen *s = config;
    const pons_reals *range[] = { &s->sigma1_x, &s->sigma1_y, &s->sigma1_z,
                                  &s->sigma2_x, &s->sigma2_y, &s->sigma2_z, &s->alpha };
    static const char *const name[] = { "sigma1_x", "sigma1_y", "sigma1_z",
                                        "sigma2_x", "sigma2_y", "sigma2_z", "alpha" };

    for (int n = 0; n < 7; n++)
        if (range_check(name[n], range[n], err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    channel_draws_plan(((const gaussian_sharpen *)config)->probability, draws, out);
    return PONS_OK;
}

/* The deviations of both filters, and the weight. */
static double draw_filters(const gaussian_sharpen *s, const channel_draws *r,
                           gaussian_filter *first, gaussian_filter *second)
{
    const pons_reals *one[] = { &s->sigma1_x, &s->sigma1_y, &s->sigma1_z };
    const pons_reals *two[] = { &s->sigma2_x, &s->sigma2_y, &s->sigma2_z };

    *first = *second = (gaussian_filter){ .approx = (gaussian_approx)s->approx };
    for (int a = 0; a < 3; a++) {
        double low = two[a]->item[0], high;

        first->sigma[a] = range_at(one[a], (double)channel_draws_uniform(r, 0, 1 + a));
        high = two[a]->count > 1 ? two[a]->item[1] : first->sigma[a];
        second->sigma[a] = low + (high - low) * (double)channel_draws_uniform(r, 0, 4 + a);
    }
    return range_at(&s->alpha, (double)channel_draws_uniform(r, 0, 7));
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const channel_draws *r = planned;
    int64_t voxels = patch->extent[0] * patch->extent[1] * patch->extent[2];
    gaussian_filter first, second;
    float alpha = r->wanted ? (float)draw_filters(config, r, &first, &second) : 0;

    for (int c = 0; c < patch->channels && r->wanted; c++) {
        float *x = patch->image + c;

        if (!pons_scope_has(scope, c))
            continue;
        gaussian_filter_apply(&first, patch, c, x, patch->channels);
        gaussian_filter_apply(&second, patch, c, patch->scratch, 1);
        for (int64_t n = 0; n < voxels; n++) {
            float smooth = x[n * patch->channels];

            x[n * patch->channels] = smooth + alpha * (smooth - patch->scratch[n]);
        }
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .record_size = sizeof(channel_draws), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(gaussian_sharpen, "1.0", "sharpen by a random weight", options, operations);
