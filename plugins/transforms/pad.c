/*
 * pad - pad a case to a least extent, as MONAI's SpatialPad.
 *
 * Half of the missing voxels are added at each end, the odd one at the high end. Or all of them are
 * added at the high end.
 */
#include <pons/transform.h>

typedef struct pad {
    int extent[3];
    int method;
    double value;
} pad;

enum { METHOD_SYMMETRIC = 0, METHOD_END };
static const char *const methods[] = { "symmetric", "end", NULL };

static const pons_option options[] = {
    PONS_AXES(pad, extent, NULL, 0, 100000,
              "Least extent in voxels; 0 leaves an axis as it is."),
    PONS_CHOICE(pad, method, "symmetric", methods, "On both sides, or at the end alone."),
    PONS_REAL(pad, value, "0", -FLT_MAX, FLT_MAX, "Intensity of new voxels; labels become 0."),
    PONS_OPTIONS_END
};

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const pad *s = config;
    int64_t start[3], extent[3];

    for (int a = 0; a < 3; a++) {
        int64_t now = c->image.extent[a], missing = s->extent[a] > now ? s->extent[a] - now : 0;

        extent[a] = now + missing;
        start[a] = s->method == METHOD_SYMMETRIC ? -(missing / 2) : 0;
    }
    return pons_case_crop(c, start, extent, s->value, err);
}

static const pons_transform_operations operations = { .geometric = true, .apply = apply };

PONS_TRANSFORM(pad, "1.0", "fills up to an extent", options, operations);
