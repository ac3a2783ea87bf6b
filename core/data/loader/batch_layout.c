/*
 * batch_layout.c - list the inputs of a micro-batch, for the loader and for the training program.
 */
#include "data/loader/batch_layout.h"

#include <stdio.h>
#include <stdlib.h>

#include "graph/ir/node.h"
#include "graph/ir/shape.h"

static void add_part(batch_layout *p, batch_part part)
{
    part.size = (size_t)shape_count(part.shape) * type_size(part.type);
    p->item[p->count++] = part;
}

static void list_host_parts(batch_layout *p, const int e[3], int channels, int label_channels)
{
    add_part(p, (batch_part){ BATCH_IMAGE, "image", PONS_F32,
                              { 5, { 1, e[0], e[1], e[2], channels } }, 0, 0, 0 });
    if (label_channels == 0)
        add_part(p, (batch_part){ BATCH_TARGET, "target", PONS_I32, { 5, { 1, 1, 1, 1, 1 } }, 0, 0,
                                  0 });
    else
        add_part(p, (batch_part){ BATCH_TARGET, "target", PONS_U8,
                                  { 5, { 1, e[0], e[1], e[2], label_channels } }, 0, 0, 0 });
}

static void list_step_params(batch_layout *p, const pipeline_step *step, int index, int channels)
{
    for (int n = 0; n < step->operations->number_count; n++) {
        batch_part part = { BATCH_NUMBER, "", PONS_F32, { 5, { 1, 1, 1, 1, channels } }, 0, index,
                            n };
        snprintf(part.name, sizeof part.name, "augment.%.200s.%d", step->name, n);
        add_part(p, part);
    }
    if (step->operations->voxel_normals) {
        batch_part part = { BATCH_KEY, "", PONS_I32, { 2, { 1, PONS_PATCH_KEY_SIZE } }, 0, index,
                            0 };
        snprintf(part.name, sizeof part.name, "augment.%.200s.key", step->name);
        add_part(p, part);
    }
}

static void list_device_parts(batch_layout *p, const pipeline *augment, const int e[3],
                              int channels)
{
    pons_shape row = { 2, { 1, PONS_PATCH_COORDINATES + e[0] + e[1] + e[2] } };

    add_part(p, (batch_part){ BATCH_IMAGE, "image.place", PONS_I32, row, 0, 0, 0 });
    add_part(p, (batch_part){ BATCH_TARGET, "target.place", PONS_I32, row, 0, 0, 0 });
    for (int i = 0; augment != NULL && i < augment->count; i++)
        if (augment->step[i].operations->build != NULL)
            list_step_params(p, &augment->step[i], i, channels);
}

pons_status batch_layout_make(bool on_device, const pipeline *augment, const int extent[3],
                              int channels, int label_channels, batch_layout *out, pons_error *err)
{
    size_t steps = augment != NULL ? (size_t)augment->count : 0;

    *out = (batch_layout){ .item = calloc(2 + steps * (PONS_SAMPLE_PARAMS_MAX + 1),
                                          sizeof *out->item) };
    if (out->item == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (on_device)
        list_device_parts(out, augment, extent, channels);
    else
        list_host_parts(out, extent, channels, label_channels);
    return PONS_OK;
}

void batch_layout_clear(batch_layout *p)
{
    free(p->item);
    *p = (batch_layout){ .count = 0 };
}

size_t batch_layout_size(const batch_layout *p)
{
    size_t size = 0;

    for (int i = 0; i < p->count; i++)
        size += p->item[i].size;
    return size;
}
