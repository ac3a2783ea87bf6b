/*
 * mixing_nodes.h - nodes that mix each sample of a micro-batch, and its target, with another.
 */
#ifndef CORE_REPLICA_MIXING_NODES_H
#define CORE_REPLICA_MIXING_NODES_H

#include "experiment/experiment.h"

/* A target for the loss: 'other' has the share 1 - share in each sample; NULL: there is none. */
typedef struct mixed_target {
    pons_node *node, *other;
    pons_node *share;         /* f32 [N, 1, 1, 1, 1]                                              */
} mixed_target;

/*
 * Mix *image [N, D, H, W, C] and its target by [train] mixup and cutmix; with neither, both stay.
 * Sample n is mixed with sample N - 1 - n. A target of one voxel stands for the whole image.
 */
pons_status mixing_nodes_add(const experiment *e, pons_graph *g, pons_node **image,
                             pons_node *target, mixed_target *out, pons_error *err);

#endif
