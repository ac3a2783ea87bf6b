/*
 * resize - resize to an extent in voxels, as MONAI's Resize, whose default mode is area. The
 * spacing changes.
 *
 * With 'size_mode = longest' the longest axis gets the extent and the others keep their
 * proportions, rounded half to even. With 'shortest' the shortest axis does, and the others are
 * rounded down, as in torchvision's Resize, whose mode is antialias. An axis of one voxel, as of a
 * picture, then stays so and is not the shortest.
 */
#include "data/volume/axis_resize.h"

#include <math.h>

typedef struct resize {
    int extent[3];
    int size_mode, mode, label_mode;
} resize;

enum { SIZE_ALL = 0, SIZE_LONGEST, SIZE_SHORTEST };
static const char *const size_modes[] = { "all", "longest", "shortest", NULL };
/* In the order of axis_mode. */
static const char *const modes[] = { "nearest", "nearest-exact", "trilinear", "area", "antialias",
                                     NULL };
static const char *const label_modes[] = { "nearest", "nearest-exact", NULL };

static const pons_option options[] = {
    PONS_AXES(resize, extent, NULL, 0, 100000,
              "New extent in voxels; 0 leaves an axis as it is."),
    PONS_CHOICE(resize, size_mode, "all", size_modes,
                "Axes that get the extent: all, the longest or the shortest; the others keep "
                "the proportions."),
    PONS_CHOICE(resize, mode, "trilinear", modes, "How the image is interpolated."),
    PONS_CHOICE(resize, label_mode, "nearest-exact", label_modes,
                "The voxel that a label is read from: as PyTorch's nearest, or the nearest."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const resize *s = config;

    if (s->size_mode == SIZE_ALL)
        return PONS_OK;
    if (s->extent[0] != s->extent[1] || s->extent[0] != s->extent[2])
        return pons_option_fail(err, "extent", "found %d %d %d, expected one number with "
                                "size_mode = %s", s->extent[0], s->extent[1], s->extent[2],
                                size_modes[s->size_mode]);
    if (s->extent[0] == 0)
        return pons_option_fail(err, "extent", "found 0, expected at least 1 with size_mode = %s",
                                size_modes[s->size_mode]);
    return PONS_OK;
}

/* The extent of the longest axis, or of the shortest one with more than one voxel. */
static int64_t leading_extent(const resize *s, const int64_t old[3])
{
    int64_t lead = 1;

    for (int a = 0; a < 3; a++)
        if (s->size_mode == SIZE_LONGEST ? old[a] > lead
                                         : old[a] > 1 && (lead == 1 || old[a] < lead))
            lead = old[a];
    return lead;
}

static void wanted_extent(const resize *s, const int64_t old[3], int64_t extent[3])
{
    int64_t lead = leading_extent(s, old);

    for (int a = 0; a < 3; a++) {
        double count = (double)old[a] * ((double)s->extent[a] / (double)lead);

        extent[a] = s->extent[a] > 0 ? s->extent[a] : old[a];
        if (s->size_mode == SIZE_LONGEST)
            extent[a] = (int64_t)fmax(1, rint(count));
        else if (s->size_mode == SIZE_SHORTEST)
            extent[a] = old[a] == 1 && lead > 1 ? 1 : old[a] * s->extent[a] / lead;
    }
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const resize *s = config;
    axis_mode mode = (axis_mode)s->mode, label = (axis_mode)s->label_mode;
    int64_t extent[3];

    wanted_extent(s, c->image.extent, extent);
    if (image_resize(&c->image, extent, (const axis_mode[]){ mode, mode, mode }, err) != PONS_OK
        || (c->label.voxels && label_resize(&c->label, extent, label, err) != PONS_OK)
        || (c->valid.voxels && label_resize(&c->valid, extent, label, err) != PONS_OK))
        return err->status;
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .geometric = true, .apply = apply
};

PONS_TRANSFORM(resize, "1.0", "resizes to an extent in voxels", options, operations);
