/*
 * affine - rotate, shear, shift and scale a patch, as MONAI's RandAffine and nnU-Net's spatial
 * transform.
 *
 * A position in the patch, relative to its centre, is multiplied by rotation, shear, translation
 * and scale, the last one first, and gives the position in the volume: a scale above 1 makes
 * objects smaller. Steps that move voxels are composed, so several affine steps interpolate once.
 */
#include "channel_draws.h"

#include <math.h>

static const char *const order_words[] = { "ijk", "kji", NULL };
static const char *const label_words[] = { "nearest", "linear", NULL };

typedef struct affine {
    pons_reals rotate_range, shear_range, translate_range, scale_range;
    double probability;
    bool isotropic;
    int rotate_order, label_mode;
} affine;

#define RANGE(MEMBER, COUNT, ...)                                                                 \
    PONS_REALS(affine, MEMBER, "", -10000, 10000, __VA_ARGS__, .count_max = 2 * COUNT)

static const pons_option options[] = {
    RANGE(rotate_range, 3,
          "Angles in radians around i, j, k: R for -R .. R, or two ends; or these for each axis."),
    RANGE(shear_range, 6,
          "Shears of i by j, k, of j by i, k and of k by i, j: as rotate_range, for 6 numbers."),
    RANGE(translate_range, 3, "Shifts in voxels along i, j, k: as rotate_range."),
    RANGE(scale_range, 3,
          "Numbers that are added to a scale of 1 along i, j, k: as rotate_range."),
    PONS_FLAG(affine, isotropic, "no",
              "Scale all axes alike: at the same share of their ranges."),
    PONS_CHOICE(affine, rotate_order, "ijk", order_words,
                "Order of the rotations in their product: ijk, as MONAI, or kji, as nnU-Net."),
    PONS_CHOICE(affine, label_mode, "nearest", label_words,
                "Label of a voxel: the nearest one, or the class with the largest linear weight."),
    PONS_REAL(affine, probability, "0.1", 0, 1, "How often a patch is moved."),
    PONS_OPTIONS_END
};

/* The ends of number 'which' of a range for 'count' numbers. */
static void range_ends(const pons_reals *range, int count, int which, double *low, double *high)
{
    const double *item = range->item;

    *low = *high = 0;
    if (range->count == 1 || range->count == count) {
        *high = item[range->count == 1 ? 0 : which];
        *low = -*high;
    } else if (range->count > 0) {
        *low = item[range->count == 2 ? 0 : 2 * which];
        *high = item[range->count == 2 ? 1 : 2 * which + 1];
    }
}

static pons_status check_range(const char *name, const pons_reals *range, int count,
                               pons_error *err)
{
    int n = range->count;

    if (n > 2 && n != count && n != 2 * count)
        return pons_option_fail(err, name, "found %d numbers, expected 1, 2, %d or %d", n, count,
                                2 * count);
    for (int which = 0; which < count; which++) {
        double low, high;

        range_ends(range, count, which, &low, &high);
        if (low > high && n != 1 && n != count)
            return pons_option_fail(err, name, "found %g before %g, expected the lower end first",
                                    low, high);
    }
    return PONS_OK;
}

static pons_status check(const void *config, pons_error *err)
{
    const affine *a = config;

    if (check_range("rotate_range", &a->rotate_range, 3, err) != PONS_OK
        || check_range("shear_range", &a->shear_range, 6, err) != PONS_OK
        || check_range("translate_range", &a->translate_range, 3, err) != PONS_OK
        || check_range("scale_range", &a->scale_range, 3, err) != PONS_OK)
        return err->status;
    for (int which = 0; which < 3; which++) {
        double low, high;

        range_ends(&a->scale_range, 3, which, &low, &high);
        if (fmin(low, high) <= -1)
            return pons_option_fail(err, "scale_range", "found %g, expected more than -1",
                                    fmin(low, high));
    }
    return PONS_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static void draw_range(const pons_reals *range, int count, pons_rng *draws, double *out)
{
    for (int which = 0; which < count; which++) {
        double low, high;

        range_ends(range, count, which, &low, &high);
        out[which] = pons_draw_range(draws, low, high);
    }
}

/* The numbers that are added to the scales; the first one gives its share to isotropic ones. */
static void draw_scale(const affine *a, pons_rng *draws, double out[3])
{
    double share[3];

    for (int axis = 0; axis < 3; axis++)
        share[axis] = (double)pons_draw_uniform(draws);
    for (int axis = 0; axis < 3; axis++) {
        double low, high;

        range_ends(&a->scale_range, 3, axis, &low, &high);
        out[axis] = low + (high - low) * share[a->isotropic ? 0 : axis];
    }
}

static void set_identity(double map[3][4])
{
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            map[r][c] = r == c;
}

/* Turn around one axis: from the next axis to the one after it. */
static void rotate(pons_sample *sample, int axis, double angle)
{
    int a = (axis + 1) % 3, b = (axis + 2) % 3;
    double map[3][4];

    set_identity(map);
    map[a][a] = map[b][b] = cos(angle);
    map[b][a] = sin(angle);
    map[a][b] = -map[b][a];
    pons_sample_compose(sample, map);
}

/* Shear one axis by the two others. */
static void shear(pons_sample *sample, int axis, const double by[2])
{
    double map[3][4];

    set_identity(map);
    map[axis][axis == 0 ? 1 : 0] = by[0];
    map[axis][axis == 2 ? 1 : 2] = by[1];
    pons_sample_compose(sample, map);
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err)
{
    const affine *a = config;
    bool wanted = (double)pons_draw_uniform(draws) < a->probability;
    double angle[3], by[6], shift[3], scale[3], map[3][4];

    draw_range(&a->rotate_range, 3, draws, angle);
    draw_range(&a->shear_range, 6, draws, by);
    draw_range(&a->translate_range, 3, draws, shift);
    draw_scale(a, draws, scale);
    if (!wanted)
        return PONS_OK;
    for (int n = 0; n < 3; n++) {
        int axis = a->rotate_order == 0 ? n : 2 - n;

        if (angle[axis] != 0)
            rotate(sample, axis, angle[axis]);
    }
    for (int axis = 2; axis >= 0; axis--)
        if (by[2 * axis] != 0 || by[2 * axis + 1] != 0)
            shear(sample, axis, by + 2 * axis);
    set_identity(map);
    for (int axis = 0; axis < 3; axis++) {
        map[axis][axis] = 1 + scale[axis];
        map[axis][3] = shift[axis];
    }
    pons_sample_compose(sample, map);
    if (a->label_mode == 1)
        sample->linear_labels = true;
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .geometric = true, .plan = plan, .resamples = true
};

PONS_TRANSFORM(affine, "1.0", "rotate, shear, shift and scale at random", options, operations);
