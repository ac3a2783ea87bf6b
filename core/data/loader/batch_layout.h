/*
 * batch_layout.h - the parts of a micro-batch: name and shape of each input of the training
 * program.
 *
 * The parts are voxels extracted on the host, or the parameters with which a device extracts them.
 */
#ifndef CORE_DATA_LOADER_BATCH_LAYOUT_H
#define CORE_DATA_LOADER_BATCH_LAYOUT_H

#include "data/transform/pipeline.h"

typedef enum batch_part_kind {
    BATCH_IMAGE = 0,           /* voxels, or a row of PONS_KERNEL_PATCH                           */
    BATCH_TARGET,
    BATCH_NUMBER,              /* a parameter of a step of [augment], [C]: pons_sample_params     */
    BATCH_KEY                  /* the key of such a step: a row of PONS_KERNEL_PATCH_NORMAL       */
} batch_part_kind;

typedef struct batch_part {
    batch_part_kind kind;
    char name[256];
    pons_type type;
    pons_shape shape;          /* of one sample                                                   */
    size_t size;               /* bytes of one sample                                             */
    int step, number;          /* of NUMBER and KEY                                               */
} batch_part;

typedef struct batch_layout {
    int count;
    batch_part *item;          /* image and target first                                          */
} batch_layout;

/*
 * 'on_device': the device extracts patches. 'extent' is in file axes, as in memory. A count of 0
 * 'label_channels' makes the class of the case, an I32, the target.
 */
pons_status batch_layout_make(bool on_device, const pipeline *augment, const int extent[3],
                              int channels, int label_channels, batch_layout *out, pons_error *err);
void batch_layout_clear(batch_layout *p);
size_t batch_layout_size(const batch_layout *p); /* bytes of one sample                           */

#endif
