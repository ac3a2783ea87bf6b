/*
 * spacing - resample to a given spacing, as MONAI's Spacing (bilinear, border, align_corners
 * false): the image linearly, labels by nearest neighbour.
 *
 * The new axes are the old ones without shear (Gram-Schmidt on the columns); the extent is
 * round((n - 1) old / new + 1), half to even; the corner of voxel 0 0 0 stays where it is.
 */
#include <pons/transform.h>

#include <math.h>
#include <string.h>

typedef struct spacing {
    double mm[3], min_pixdim[3], max_pixdim[3];
    bool diagonal;
} spacing;

static const pons_option options[] = {
    PONS_OPTION_(spacing, mm, PONS_OPTION_REAL_AXES, NULL, 0, 1000, NULL,
                 "New spacing in millimetres; 0 keeps that of an axis."),
    PONS_REAL_AXES(spacing, min_pixdim, "", 0, 1000,
                   "An axis whose spacing lies between min_pixdim and max_pixdim stays; 0: mm."),
    PONS_REAL_AXES(spacing, max_pixdim, "", 0, 1000,
                   "An axis whose spacing lies between min_pixdim and max_pixdim stays; 0: mm."),
    PONS_FLAG(spacing, diagonal, no, "Drop rotation and flips from the new affine."),
    PONS_OPTIONS_END
};

/* Differences below this are none. */
static const double TOLERANCE = 1e-3;

static pons_status check(const void *config, pons_error *err)
{
    const spacing *s = config;

    for (int a = 0; a < 3; a++)
        if (s->min_pixdim[a] > 0 && s->max_pixdim[a] > 0 && s->min_pixdim[a] > s->max_pixdim[a])
            return pons_fail(err, PONS_CONFIG, "'min_pixdim' is %g along axis %d, expected at most "
                             "'max_pixdim', %g", s->min_pixdim[a], a, s->max_pixdim[a]);
    return PONS_OK;
}

static void wanted_spacing(const spacing *s, const double now[3], double out[3])
{
    for (int a = 0; a < 3; a++) {
        double target = s->mm[a] > 0 ? s->mm[a] : now[a];
        double low = s->min_pixdim[a] > 0 ? fmin(s->min_pixdim[a], target) : target;
        double high = s->max_pixdim[a] > 0 ? fmax(s->max_pixdim[a], target) : target;

        out[a] = now[a] >= low - TOLERANCE && now[a] <= high + TOLERANCE ? now[a] : target;
    }
}

/* Orthonormal columns spanning the same axes, each as long as its new spacing. */
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

/* Index of a corner voxel's centre: 0 or n - 1 along each axis. */
static double corner_index(const pons_volume *v, int corner, int axis)
{
    return corner >> (2 - axis) & 1 ? (double)(v->extent[axis] - 1) : 0;
}

/*
 * The extent that covers all corner centres, and the origin: the corner that has the least index on
 * every axis of the new grid, or, where a shear leaves none, equal centres.
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

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const spacing *s = config;
    double now[3], wanted[3], affine[3][4] = { { 0 } };
    int64_t extent[3];

    pons_volume_spacing(&c->image, now);
    wanted_spacing(s, now, wanted);
    scale_axes(&c->image, wanted, s->diagonal, affine);
    if (place_grid(&c->image, affine, extent, err) != PONS_OK)
        return err->status;
    if (is_same(&c->image, (const double (*)[4])affine, extent))
        return PONS_OK;
    return pons_case_resample(c, (const double (*)[4])affine, extent, err);
}

PONS_TRANSFORM(spacing, "1.0", "resamples to a spacing in millimetres", options, true, check,
               apply)
