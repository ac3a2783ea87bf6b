/*
 * random_resized_crop - cut a box of random extent and proportions, and resize it to the patch, as
 * torchvision's RandomResizedCrop.
 *
 * The box has a share of the case's voxels and a ratio of its last axis to the one before, both
 * drawn; 3D boxes also draw the ratio of the first axis to the mean of the others. A box that does
 * not fit is drawn again, ten times at most. Then the middle of the case is cut, in 2D to the
 * nearest ratio that is allowed. Along an axis of one voxel of the patch one voxel is drawn.
 */
#include <pons/transform.h>

#include <math.h>
#include <string.h>

enum { TRIES = 10 };

typedef struct random_resized_crop {
    pons_reals scale, ratio;
    bool antialias;
} random_resized_crop;

static const pons_option options[] = {
    PONS_REALS(random_resized_crop, scale, "0.08 1", 0, 1,
               "Smallest and largest share of the case's voxels.", .count_min = 2, .count_max = 2),
    PONS_REALS(random_resized_crop, ratio, "0.75 1.3333333333333333", 0.001, 1000,
               "Smallest and largest ratio of the box's axes, k to j.", .count_min = 2,
               .count_max = 2),
    PONS_FLAG(random_resized_crop, antialias, "yes",
              "A voxel of a shrunk box is a mean over as many as it covers, not of two an axis."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const random_resized_crop *c = config;
    const struct { const char *name; const pons_reals *range; } ranges[] = {
        { "scale", &c->scale }, { "ratio", &c->ratio }
    };

    for (int n = 0; n < 2; n++) {
        const double *item = ranges[n].range->item;

        if (item[0] > item[1])
            return pons_option_fail(err, ranges[n].name, "found %g before %g, expected the lower "
                                    "end first", item[0], item[1]);
        if (item[0] <= 0)
            return pons_option_fail(err, ranges[n].name, "found %g, expected more than 0", item[0]);
    }
    return PONS_OK;
}

/* The axes along which the patch has more than one voxel. */
typedef struct box_axes {
    int count, axis[3];
    int64_t extent[3];        /* of the case, along these axes                                    */
} box_axes;

static box_axes axes_of(const pons_sample *s)
{
    box_axes x = { 0 };

    for (int a = 0; a < 3; a++)
        if (s->extent[a] > 1) {
            x.extent[x.count] = s->case_extent[a];
            x.axis[x.count++] = a;
        }
    return x;
}

/* Draw the extent of a box. Returns whether it fits into the case. */
static bool draw_extent(const random_resized_crop *c, pons_rng *draws, const box_axes *x,
                        int64_t extent[3])
{
    const double *scale = c->scale.item, *ratio = c->ratio.item;
    double voxels = pons_draw_range(draws, scale[0], scale[1]), factor[3] = { 1, 1, 1 };
    bool fits = true;

    for (int n = 0; n < x->count; n++)
        voxels *= (double)x->extent[n];
    if (x->count > 1) {
        double drawn = exp(pons_draw_range(draws, log(ratio[0]), log(ratio[1])));

        factor[x->count - 1] = sqrt(drawn);
        factor[x->count - 2] = 1 / sqrt(drawn);
    }
    if (x->count == 3) {
        double drawn = exp(pons_draw_range(draws, log(ratio[0]), log(ratio[1])));

        for (int n = 0; n < 3; n++)
            factor[n] *= pow(drawn, n == 0 ? 2.0 / 3 : -1.0 / 3);
    }
    for (int n = 0; n < x->count; n++) {
        extent[n] = (int64_t)rint(pow(voxels, 1.0 / x->count) * factor[n]);
        fits = fits && extent[n] > 0 && extent[n] <= x->extent[n];
    }
    return fits;
}

/* The largest box in the middle, in 2D with an allowed ratio. */
static void middle_extent(const random_resized_crop *c, const box_axes *x, int64_t extent[3])
{
    double rows = (double)x->extent[0], columns = (double)x->extent[1];

    memcpy(extent, x->extent, sizeof x->extent);
    if (x->count != 2)
        return;
    if (columns / rows < c->ratio.item[0])
        extent[0] = (int64_t)fmax(1, rint(columns / c->ratio.item[0]));
    else if (columns / rows > c->ratio.item[1])
        extent[1] = (int64_t)fmax(1, rint(rows * c->ratio.item[1]));
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err)
{
    const random_resized_crop *c = config;
    box_axes x = axes_of(sample);
    int64_t extent[3];
    bool fits = false;

    for (int n = 0; n < TRIES && !fits; n++)
        fits = draw_extent(c, draws, &x, extent);
    if (!fits)
        middle_extent(c, &x, extent);
    for (int a = 0; a < 3; a++) {
        sample->crop_extent[a] = 1;
        sample->crop_start[a] = sample->extent[a] > 1 ? 0
                                : pons_draw_index(draws, sample->case_extent[a]);
    }
    for (int n = 0; n < x.count; n++) {
        int64_t left = x.extent[n] - extent[n];

        sample->crop_extent[x.axis[n]] = extent[n];
        sample->crop_start[x.axis[n]] = fits ? pons_draw_index(draws, left + 1) : left / 2;
    }
    sample->crop_antialias = c->antialias;
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .geometric = true, .plan = plan, .resamples = true, .crops = true
};

PONS_TRANSFORM(random_resized_crop, "1.0", "cut a random box and resize it to the patch", options,
               operations);
