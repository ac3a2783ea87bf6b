/*
 * batch_layout.h - what a micro-batch consists of: for each input of the training program its name
 * and shape. Either voxels that the host has cut, or what a device needs to cut them itself.
 */
#ifndef CORE_DATA_LOADER_BATCH_LAYOUT_H
#define CORE_DATA_LOADER_BATCH_LAYOUT_H

#include "data/transform/pipeline.h"

typedef enum patch_part_kind {
    PATCH_IMAGE = 0,           /* voxels, or a row of PONS_KERNEL_PATCH                           */
    PATCH_TARGET,
    PATCH_NUMBER,              /* of a step of [augment], [C] each: pons_sample_params            */
    PATCH_KEY                  /* of such a step: a row of PONS_KERNEL_PATCH_NORMAL               */
} patch_part_kind;

typedef struct patch_part {
    patch_part_kind kind;
    char name[256];
    pons_type type;
    pons_shape shape;          /* with one sample                                                 */
    size_t size;               /* bytes of a sample                                               */
    int step, number;          /* NUMBER, KEY                                                     */
} patch_part;

typedef struct patch_parts {
    int count;
    patch_part *item;          /* image and target first                                          */
} patch_parts;

/* 'placed': for a device that cuts. 'extent' along the axes of the file, as memory has them. */
pons_status patch_parts_make(bool placed, const volume_chain *augment, const int extent[3],
                             int channels, int label_channels, patch_parts *out, pons_error *err);
void patch_parts_clear(patch_parts *p);
size_t patch_parts_size(const patch_parts *p); /* bytes of a sample                               */

#endif
