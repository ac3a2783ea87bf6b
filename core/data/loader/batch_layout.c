/*
 * batch_layout.c - the list of a micro-batch's parts, the same for who fills and who reads them.
 */
#include "data/loader/batch_layout.h"

#include <stdio.h>
#include <stdlib.h>

#include "graph/ir/node.h"
#include "graph/ir/shape.h"

static void add_part(patch_parts *p, patch_part part)
{
    part.size = (size_t)shape_count(part.shape) * type_size(part.type);
    p->item[p->count++] = part;
}

static void list_voxels(patch_parts *p, const int e[3], int channels, int label_channels)
{
    add_part(p, (patch_part){ PATCH_IMAGE, "image", PONS_F32,
                              { 5, { 1, e[0], e[1], e[2], channels } }, 0, 0, 0 });
    add_part(p, (patch_part){ PATCH_TARGET, "target", PONS_U8,
                              { 5, { 1, e[0], e[1], e[2], label_channels } }, 0, 0, 0 });
}

static void list_numbers(patch_parts *p, const volume_step *step, int index, int channels)
{
    for (int n = 0; n < step->operations->number_count; n++) {
        patch_part part = { PATCH_NUMBER, "", PONS_F32, { 5, { 1, 1, 1, 1, channels } }, 0, index,
                            n };
        snprintf(part.name, sizeof part.name, "augment.%.200s.%d", step->name, n);
        add_part(p, part);
    }
    if (step->operations->voxel_normals) {
        patch_part part = { PATCH_KEY, "", PONS_I32, { 2, { 1, PONS_PATCH_KEY_SIZE } }, 0, index,
                            0 };
        snprintf(part.name, sizeof part.name, "augment.%.200s.key", step->name);
        add_part(p, part);
    }
}

static void list_places(patch_parts *p, const volume_chain *augment, const int e[3], int channels)
{
    pons_shape row = { 2, { 1, PONS_PATCH_PLACE + e[0] + e[1] + e[2] } };

    add_part(p, (patch_part){ PATCH_IMAGE, "image.place", PONS_I32, row, 0, 0, 0 });
    add_part(p, (patch_part){ PATCH_TARGET, "target.place", PONS_I32, row, 0, 0, 0 });
    for (int i = 0; augment != NULL && i < augment->count; i++)
        if (augment->step[i].operations->build != NULL)
            list_numbers(p, &augment->step[i], i, channels);
}

pons_status patch_parts_make(bool placed, const volume_chain *augment, const int extent[3],
                             int channels, int label_channels, patch_parts *out, pons_error *err)
{
    size_t steps = augment != NULL ? (size_t)augment->count : 0;

    *out = (patch_parts){ .item = calloc(2 + steps * (PONS_SAMPLE_PARAMS_MAX + 1),
                                         sizeof *out->item) };
    if (out->item == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (placed)
        list_places(out, augment, extent, channels);
    else
        list_voxels(out, extent, channels, label_channels);
    return PONS_OK;
}

void patch_parts_clear(patch_parts *p)
{
    free(p->item);
    *p = (patch_parts){ .count = 0 };
}

size_t patch_parts_size(const patch_parts *p)
{
    size_t size = 0;

    for (int i = 0; i < p->count; i++)
        size += p->item[i].size;
    return size;
}
