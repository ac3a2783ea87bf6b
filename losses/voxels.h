/*
 * voxels.h - the mask of a target, and sums and means over the voxels that it leaves.
 */
#ifndef LOSSES_VOXELS_H
#define LOSSES_VOXELS_H

#include <pons/loss.h>

typedef enum reduction { REDUCTION_MEAN, REDUCTION_SUM } reduction;

extern const char *const reductions[];

/* The target's mask as f32 [N, D, H, W, 1], or NULL if every voxel counts. */
pons_node *voxels_valid(pons_graph *g, const pons_target *target);
/* x inside the mask and 0 outside, even if x is NaN there. Without a mask it is x. */
pons_node *voxels_masked(pons_graph *g, pons_node *x, pons_node *valid);
/* The sum of all elements of x [N, .., .., .., C], over all replicas if the batch is joined. */
pons_node *voxels_total(pons_graph *g, pons_node *x);
/*
 * The sum of x [N, D, H, W, C] over channels, averaged over the voxels in the mask, or summed over
 * them. 'weights' are the weights of the mean, NULL if all are equal. The mean of an empty mask,
 * and one whose weights are all 0, is 0.
 */
pons_node *voxels_reduce(pons_graph *g, reduction how, pons_node *x, pons_node *weights,
                         pons_node *valid);
/* The mean or sum of x over voxels in the mask and over channels. */
pons_node *voxels_average(pons_graph *g, reduction how, pons_node *x, pons_node *valid);

#endif
