/*
 * center_crop - cut the middle of a case to an extent, as torchvision's CenterCrop.
 *
 * The first voxel is (n - extent) / 2, rounded half to even. A shorter axis is filled up at both
 * ends, the odd voxel at the high end.
 */
#include <pons/transform.h>

#include <math.h>

typedef struct center_crop {
    int extent[3];
    double value;
} center_crop;

static const pons_option options[] = {
    PONS_AXES(center_crop, extent, NULL, 0, 100000,
              "Extent in voxels; 0 leaves an axis as it is."),
    PONS_REAL(center_crop, value, "0", -FLT_MAX, FLT_MAX,
              "Intensity of new voxels; labels become 0."),
    PONS_OPTIONS_END
};

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const center_crop *s = config;
    int64_t start[3], extent[3];

    for (int a = 0; a < 3; a++) {
        int64_t now = c->image.extent[a];

        extent[a] = s->extent[a] > 0 ? s->extent[a] : now;
        start[a] = now < extent[a] ? -((extent[a] - now) / 2)
                                   : (int64_t)rint((double)(now - extent[a]) / 2);
    }
    return pons_case_crop(c, start, extent, s->value, err);
}

static const pons_transform_operations operations = { .geometric = true, .apply = apply };

PONS_TRANSFORM(center_crop, "1.0", "cuts the middle to an extent", options, operations);
