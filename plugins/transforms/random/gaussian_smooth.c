/*
 * gaussian_smooth - blur by a Gaussian of random width, as MONAI's RandGaussianSmooth and nnU-Net.
 */
#include "channel_draws.h"
#include "gaussian_filter.h"

typedef struct gaussian_smooth {
    pons_reals sigma_x, sigma_y, sigma_z;
    double probability, channel_probability;
    int approx, padding_mode;
    bool channel_wise;
} gaussian_smooth;

#define SIGMA(MEMBER, AXIS)                                                                       \
    PONS_REALS(gaussian_smooth, MEMBER, "0.25 1.5", 0, GAUSSIAN_SIGMA_MAX,                        \
               "Ends of the range of the deviation along " AXIS ", in voxels.", .count_min = 2,   \
               .count_max = 2)

static const pons_option options[] = {
    SIGMA(sigma_x, "i"), SIGMA(sigma_y, "j"), SIGMA(sigma_z, "k"),
    PONS_CHOICE(gaussian_smooth, approx, "erf", gaussian_approx_words,
                "Weights: erf, integrals over voxels up to 4 deviations, or sampled, values at the "
                "voxels up to 3, as nnU-Net."),
    PONS_CHOICE(gaussian_smooth, padding_mode, "zeros", gaussian_border_words,
                "Values outside of the patch: zeros, or reflect at its outermost voxels."),
    PONS_REAL(gaussian_smooth, probability, "0.1", 0, 1, "How often a patch is smoothed."),
    PONS_REAL(gaussian_smooth, channel_probability, "1", 0, 1,
              "How often a channel of a smoothed patch is smoothed."),
    PONS_FLAG(gaussian_smooth, channel_wise, "no", "Draw deviations for each channel."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const gaussian_smooth *s = config;

    if (range_check("sigma_x", &s->sigma_x, err) != PONS_OK
        || range_check("sigma_y", &s->sigma_y, err) != PONS_OK)
        return err->status;
    return range_check("sigma_z", &s->sigma_z, err);
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    channel_draws_plan(((const gaussian_smooth *)config)->probability, draws, out);
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const gaussian_smooth *s = config;
    const pons_reals *range[] = { &s->sigma_x, &s->sigma_y, &s->sigma_z };
    const channel_draws *r = planned;

    for (int c = 0; c < patch->channels; c++) {
        gaussian_filter f = { .approx = (gaussian_approx)s->approx,
                              .border = (gaussian_border)s->padding_mode };

        if (!channel_draws_has(r, scope, c, s->channel_probability))
            continue;
        for (int a = 0; a < 3; a++) {
            int from = s->channel_wise ? c : 0;

            f.sigma[a] = range_at(range[a], (double)channel_draws_uniform(r, from, 1 + a));
        }
        gaussian_filter_apply(&f, patch, c, patch->image + c, patch->channels);
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .record_size = sizeof(channel_draws), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(gaussian_smooth, "1.0", "blur by a random width", options, operations);
