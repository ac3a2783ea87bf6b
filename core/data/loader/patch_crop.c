/*
 * patch_crop.c - cut a box out of a packed case and resize it to a packed case of floats.
 */
#include "data/loader/patch_crop.h"

#include <string.h>

#include "data/case/case_read.h"
#include "data/loader/patch_extract.h"
#include "data/volume/axis_resize.h"

static pons_status check_box(const packed_case *p, const pons_sample *s, pons_error *err)
{
    for (int a = 0; a < 3; a++) {
        int64_t start = s->crop_start[a], extent = s->crop_extent[a], n = p->image.extent[a];

        if (extent < 1 || start < 0 || extent > n || start > n - extent)
            return pons_fail(err, PONS_PLUGIN, "a step of [augment] cuts %lld voxels from voxel "
                             "%lld of axis %d, expected a box in the %lld voxels of the case",
                             (long long)extent, (long long)start, a, (long long)n);
    }
    return PONS_OK;
}

/* The voxels of the box as they are in the case. */
static pons_status cut_box(const packed_case *p, const pons_sample *s, pons_case *box,
                           pons_error *err)
{
    const int64_t *e = s->crop_extent;
    const pons_sample cut = { .size = sizeof cut, .extent = { e[0], e[1], e[2] },
                              .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };

    if (pons_volume_init(&box->image, PONS_F32, p->image.channels, e, err) != PONS_OK
        || (p->target != NULL
            && pons_volume_init(&box->label, PONS_U8, p->label.channels, e, err) != PONS_OK))
        return err->status;
    patch_extract(p, &cut, s->crop_start, LOADER_PAD_ZERO, 0, e[0], box->image.voxels,
                  box->label.voxels);
    return PONS_OK;
}

static pons_status resize_box(pons_case *box, const int64_t extent[3], bool antialias,
                              pons_error *err)
{
    axis_mode mode = antialias ? AXIS_ANTIALIAS : AXIS_LINEAR;

    if (image_resize(&box->image, extent, (const axis_mode[]){ mode, mode, mode }, err) == PONS_OK
        && box->label.voxels != NULL)
        label_resize(&box->label, extent, AXIS_NEAREST_EXACT, err);
    return err->status;
}

pons_status patch_crop(const packed_case *p, const pons_sample *sample, const int64_t extent[3],
                       packed_case *out, pons_error *err)
{
    pons_case box = { .size = sizeof box };

    if (check_box(p, sample, err) != PONS_OK || cut_box(p, sample, &box, err) != PONS_OK
        || resize_box(&box, extent, sample->crop_antialias, err) != PONS_OK) {
        case_clear(&box);
        return err->status;
    }
    *out = (packed_case){ .image = box.image, .label = box.label, .code_size = sizeof(float),
                          .codes = box.image.voxels, .target = box.label.voxels };
    out->image.voxels = out->label.voxels = NULL;
    return PONS_OK;
}
