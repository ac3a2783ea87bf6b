/*
 * low_resolution - shrink a patch to its nearest voxels and enlarge it linearly, as MONAI's
 * RandSimulateLowResolution and nnU-Net.
 *
 * The small patch lies in the first half of the scratch memory, a row of it in the second half.
 */
#include "channel_draws.h"

#include <math.h>

static const char *const mode_words[] = { "nearest", "nearest-exact", NULL };

typedef struct low_resolution {
    pons_reals zoom_range;
    pons_integers axes;
    int downsample_mode;
    double probability, channel_probability;
    bool channel_wise;
} low_resolution;

static const pons_option options[] = {
    PONS_REALS(low_resolution, zoom_range, "0.5 1", 0.01, 1,
               "Ends of the range of the factor of all extents.", .count_min = 2, .count_max = 2),
    PONS_CHOICE(low_resolution, downsample_mode, "nearest", mode_words,
                "Voxels that stay: nearest, as MONAI, or nearest-exact, as nnU-Net."),
    PONS_INTEGERS(low_resolution, axes, "0 1 2", 0, 2, "Axes that lose resolution, 0 1 2 = i j k.",
                  .count_min = 1, .count_max = 3),
    PONS_REAL(low_resolution, probability, "0.1", 0, 1, "How often a patch is changed."),
    PONS_REAL(low_resolution, channel_probability, "1", 0, 1,
              "How often a channel of a changed patch is changed."),
    PONS_FLAG(low_resolution, channel_wise, "no", "Draw a factor for each channel."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    return range_check("zoom_range", &((const low_resolution *)config)->zoom_range, err);
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    channel_draws_plan(((const low_resolution *)config)->probability, draws, out);
    return PONS_OK;
}

/* The index that a voxel of the small patch is taken from. */
static int64_t taken_from(int64_t i, int64_t old, int64_t count, bool exact)
{
    double at = floor(((double)i + (exact ? 0.5 : 0)) * ((double)old / (double)count));

    return at < (double)old ? (int64_t)at : old - 1;
}

static void shrink(const pons_patch *patch, int channel, const int64_t small[3], bool exact)
{
    const int64_t *e = patch->extent;
    float *to = patch->scratch;

    for (int64_t i = 0; i < small[0]; i++)
        for (int64_t j = 0; j < small[1]; j++) {
            int64_t row = (taken_from(i, e[0], small[0], exact) * e[1]
                           + taken_from(j, e[1], small[1], exact)) * e[2];

            for (int64_t k = 0; k < small[2]; k++) {
                int64_t at = row + taken_from(k, e[2], small[2], exact);

                *to++ = patch->image[at * patch->channels + channel];
            }
        }
}

/* A voxel between two of the small patch: index of the first, step to the second, its share. */
typedef struct between {
    int64_t low, step;
    float share;
} between;

static inline between between_at(int64_t i, double ratio, int64_t count)
{
    double at = fmax(0, ((double)i + 0.5) * ratio - 0.5);
    int64_t low = (int64_t)at;

    return (between){ low, low + 1 < count, (float)(at - (double)low) };
}

static void enlarge(const pons_patch *patch, int channel, const int64_t small[3])
{
    const int64_t *e = patch->extent;
    float *line = patch->scratch + e[0] * e[1] * e[2], *to = patch->image + channel;
    double ratio[3];

    for (int a = 0; a < 3; a++)
        ratio[a] = (double)small[a] / (double)e[a];
    for (int64_t i = 0; i < e[0]; i++)
        for (int64_t j = 0; j < e[1]; j++) {
            between p = between_at(i, ratio[0], small[0]), q = between_at(j, ratio[1], small[1]);
            const float *a = patch->scratch + (p.low * small[1] + q.low) * small[2];
            const float *b = a + q.step * small[2], *c = a + p.step * small[1] * small[2];
            const float *d = c + q.step * small[2];

            for (int64_t k = 0; k < small[2]; k++) {
                float first = a[k] + (b[k] - a[k]) * q.share;
                float second = c[k] + (d[k] - c[k]) * q.share;

                line[k] = first + (second - first) * p.share;
            }
            for (int64_t k = 0; k < e[2]; k++, to += patch->channels) {
                between r = between_at(k, ratio[2], small[2]);

                *to = line[r.low] + (line[r.low + r.step] - line[r.low]) * r.share;
            }
        }
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const low_resolution *s = config;
    const channel_draws *r = planned;

    for (int c = 0; c < patch->channels; c++) {
        int64_t small[3] = { patch->extent[0], patch->extent[1], patch->extent[2] };
        double zoom;

        if (!channel_draws_has(r, scope, c, s->channel_probability))
            continue;
        zoom = range_at(&s->zoom_range,
                        (double)channel_draws_uniform(r, s->channel_wise ? c : 0, 1));
        for (int n = 0; n < s->axes.count; n++) {
            int64_t axis = s->axes.item[n];

            small[axis] = (int64_t)fmax(1, rint((double)patch->extent[axis] * zoom));
        }
        shrink(patch, c, small, s->downsample_mode == 1);
        enlarge(patch, c, small);
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .record_size = sizeof(channel_draws), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(low_resolution, "1.0", "simulate a coarser image", options, operations);
