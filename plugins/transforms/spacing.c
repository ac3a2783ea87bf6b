/*
 * spacing - resample to a given spacing, as MONAI's Spacing (bilinear, border, align_corners
 * false) or as nnU-Net. MONAI's interpolates the image linearly, labels by nearest neighbour.
 *
 * The new axes are the old ones without shear (Gram-Schmidt on the columns). The extent is
 * round((n - 1) old / new + 1), half to even. The corner of voxel 0 0 0 keeps its position.
 *
 * nnU-Net's extent is round(n old / new), and the edges of both grids lie in the same place.
 */
#include "nnunet_resample.h"

#include <math.h>
#include <string.h>

typedef struct spacing {
    double mm[3], min_pixdim[3], max_pixdim[3];
    bool diagonal;
    int method, order, order_z, force_separate_z;
} spacing;

enum { METHOD_MONAI = 0, METHOD_NNUNET };
static const char *const methods[] = { "monai", "nnunet", NULL };
enum { ORDER_0 = 0, ORDER_1, ORDER_3 };
static const char *const orders[] = { "0", "1", "3", NULL };
static const char *const separations[] = { "auto", "yes", "no", NULL };

static const pons_option options[] = {
    PONS_REAL_AXES(spacing, mm, NULL, 0, 1000,
                   "New spacing in millimetres; 0 keeps that of an axis."),
    PONS_REAL_AXES(spacing, min_pixdim, "", 0, 1000,
                   "An axis whose spacing lies between min_pixdim and max_pixdim stays; 0: mm."),
    PONS_REAL_AXES(spacing, max_pixdim, "", 0, 1000,
                   "An axis whose spacing lies between min_pixdim and max_pixdim stays; 0: mm."),
    PONS_FLAG(spacing, diagonal, "no", "Drop rotation and flips from the new affine."),
    PONS_CHOICE(spacing, method, "monai", methods, "The grid and the interpolation."),
    PONS_CHOICE(spacing, order, "3", orders,
                "nnunet: splines of the image of this order; labels are linear for each class."),
    PONS_CHOICE(spacing, order_z, "0", orders, "nnunet: order across slices that are far apart."),
    PONS_CHOICE(spacing, force_separate_z, "auto", separations,
                "nnunet: resize slice by slice; auto: if a spacing is over 3 times another."),
    PONS_OPTIONS_END
};

/* The tolerance of a comparison. */
static const double TOLERANCE = 1e-3;
/* A larger image is that of a wrong spacing. */
static const double VOXELS_MAX = 1e12;

static pons_status check_method(const spacing *s, pons_error *err)
{
    if (s->method == METHOD_NNUNET && s->diagonal)
        return pons_option_fail(err, "diagonal", "found yes, expected no with method = nnunet");
    if (s->method == METHOD_NNUNET)
        return PONS_OK;
    if (s->order != ORDER_3)
        return pons_option_fail(err, "order", "found %s, expected 3 unless method = nnunet",
                                orders[s->order]);
    if (s->order_z != ORDER_0)
        return pons_option_fail(err, "order_z", "found %s, expected 0 unless method = nnunet",
                                orders[s->order_z]);
    if (s->force_separate_z != PONS_SLICES_AUTO)
        return pons_option_fail(err, "force_separate_z", "found %s, expected auto unless method = "
                                "nnunet", separations[s->force_separate_z]);
    return PONS_OK;
}

static pons_status check(const void *config, pons_error *err)
{
    const spacing *s = config;

    for (int a = 0; a < 3; a++)
        if (s->min_pixdim[a] > 0 && s->max_pixdim[a] > 0 && s->min_pixdim[a] > s->max_pixdim[a])
            return pons_option_fail(err, "min_pixdim", "found %g along axis %d, expected at most "
                                    "max_pixdim, %g", s->min_pixdim[a], a, s->max_pixdim[a]);
    return check_method(s, err);
}

static void wanted_spacing(const spacing *s, const double now[3], double out[3])
{
    for (int a = 0; a < 3; a++) {
        double target = s->mm[a] > 0 ? s->mm[a] : now[a];
        double low = s->min_pixdim[a] > 0 ? fmin(s->min_pixdim[a], target) : target;
        double high = s->max_pixdim[a] > 0 ? fmax(s->max_pixdim[a], target) : target;

        double tolerance = s->method == METHOD_MONAI ? TOLERANCE : 0;

        out[a] = now[a] >= low - tolerance && now[a] <= high + tolerance ? now[a] : target;
    }
}

/* Orthogonal columns that span the same axes, each as long as its new spacing. */
static void scale_axes(const pons_volume *v, const double length[3], bool diagonal,
                       double out[3][4])
{
    for (int c = 0; c < 3; c++) {
        double column[3], norm = 0;

        for (int r = 0; r < 3; r++)
            column[r] = v->affine[r][c];
        for (int before = 0; before < c; before++) {
            double dot = 0;

            for (int r = 0; r < 3; r++)
                dot += out[r][before] / length[before] * v->affine[r][c];
            for (int r = 0; r < 3; r++)
                column[r] -= dot * out[r][before] / length[before];
        }
        for (int r = 0; r < 3; r++)
            norm += column[r] * column[r];
        for (int r = 0; r < 3; r++)
            out[r][c] = column[r] / sqrt(norm) * length[c];
    }
    if (diagonal)
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++)
                out[r][c] = r == c ? length[c] : 0;
}

/* The index of a corner voxel's centre along an axis: 0 or n - 1. */
static double corner_index(const pons_volume *v, int corner, int axis)
{
    return corner >> (2 - axis) & 1 ? (double)(v->extent[axis] - 1) : 0;
}

/*
 * Find the extent that covers all corner centres, and the origin. The origin is the corner with the
 * lowest index on every axis of the new grid. A shear may leave no such corner: then the centres of
 * both grids are equal.
 */
static pons_status place_grid(const pons_volume *v, double affine[3][4], int64_t extent[3],
                              pons_error *err)
{
    double inverse[3][4], m[3][4], at[8][3];
    int origin = -1;

    if (!pons_affine_invert((const double (*)[4])affine, inverse))
        return pons_fail(err, PONS_DATA, "a volume with a singular affine cannot be resampled");
    pons_affine_multiply((const double (*)[4])inverse, (const double (*)[4])v->affine, m);
    for (int n = 0; n < 8; n++)
        for (int r = 0; r < 3; r++)
            at[n][r] = m[r][0] * corner_index(v, n, 0) + m[r][1] * corner_index(v, n, 1) +
                       m[r][2] * corner_index(v, n, 2);
    for (int r = 0; r < 3; r++) {
        double low = at[0][r], high = at[0][r];

        for (int n = 1; n < 8; n++) {
            low = fmin(low, at[n][r]);
            high = fmax(high, at[n][r]);
        }
        double count = fmax(1, rint(high - low + 1));
        if (!(count <= INT32_MAX))
            return pons_fail(err, PONS_DATA, "the new spacing gives %.4g voxels along axis %d, "
                             "expected at most %d", count, r, INT32_MAX);
        extent[r] = (int64_t)count;
        for (int n = 0; n < 8; n++)
            at[n][r] -= low;
    }
    for (int n = 0; n < 8 && origin < 0; n++)
        if (fabs(at[n][0]) <= 1e-8 && fabs(at[n][1]) <= 1e-8 && fabs(at[n][2]) <= 1e-8)
            origin = n;
    for (int r = 0; r < 3; r++) {
        affine[r][3] = v->affine[r][3];
        for (int c = 0; c < 3; c++)
            affine[r][3] += origin >= 0 ? v->affine[r][c] * corner_index(v, origin, c)
                                        : v->affine[r][c] * (double)v->extent[c] / 2 -
                                              affine[r][c] * (double)extent[c] / 2;
    }
    return PONS_OK;
}

static bool is_same(const pons_volume *v, const double affine[3][4], const int64_t extent[3])
{
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            if (fabs(v->affine[r][c] - affine[r][c]) > TOLERANCE + 1e-5 * fabs(affine[r][c]))
                return false;
    return !memcmp(v->extent, extent, sizeof v->extent);
}

static pons_status apply_nnunet(const spacing *s, const double now[3], const double wanted[3],
                                pons_case *c, pons_error *err)
{
    static const axis_mode mode[] = { AXIS_NEAREST_EXACT, AXIS_LINEAR, AXIS_CUBIC };
    nnunet_modes modes = { mode[s->order], mode[s->order_z], -1 };
    int64_t extent[3];
    double voxels = 1;

    for (int a = 0; a < 3; a++) {
        double count = rint(now[a] / wanted[a] * (double)c->image.extent[a]);

        if (!(count >= 1 && count <= INT32_MAX))
            return pons_fail(err, PONS_DATA, "a spacing of %g mm along axis %d gives %.4g voxels "
                             "of %g mm, expected 1 to %d", now[a], a, count, wanted[a], INT32_MAX);
        extent[a] = (int64_t)count;
        voxels *= count;
    }
    if (voxels > VOXELS_MAX)
        return pons_fail(err, PONS_DATA, "a spacing of %g x %g x %g mm gives %.4g voxels of %g x "
                         "%g x %g mm, expected at most %g", now[0], now[1], now[2], voxels,
                         wanted[0], wanted[1], wanted[2], VOXELS_MAX);
    modes.separate_axis = pons_slice_axis((pons_slices)s->force_separate_z, now, wanted);
    return nnunet_resample(c, extent, &modes, err);
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const spacing *s = config;
    double now[3], wanted[3], affine[3][4] = { { 0 } };
    int64_t extent[3];

    pons_volume_spacing(&c->image, now);
    wanted_spacing(s, now, wanted);
    if (s->method == METHOD_NNUNET)
        return apply_nnunet(s, now, wanted, c, err);
    scale_axes(&c->image, wanted, s->diagonal, affine);
    if (place_grid(&c->image, affine, extent, err) != PONS_OK)
        return err->status;
    if (is_same(&c->image, (const double (*)[4])affine, extent))
        return PONS_OK;
    return pons_case_resample(c, (const double (*)[4])affine, extent, err);
}

static const pons_transform_operations operations = {
    .check = check, .geometric = true, .apply = apply
};

PONS_TRANSFORM(spacing, "1.0", "resamples to a spacing in millimetres", options, operations);
