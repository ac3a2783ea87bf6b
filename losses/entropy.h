/*
 * entropy.h - the cross-entropy of exclusive classes and of single channels.
 */
#ifndef LOSSES_ENTROPY_H
#define LOSSES_ENTROPY_H

#include "voxels.h"

typedef struct entropy {
    reduction reduction;
    double label_smoothing;   /* of exclusive classes                                             */
    pons_node *weights;       /* [C] or rank 0; NULL: 1                                           */
    pons_node *valid;         /* see voxels.h                                                     */
} entropy;

/*
 * Entropy of exclusive classes as torch.nn.functional.cross_entropy: with q = softmax(x), the
 * one-hot target t of class y, weights w and smoothing s,
 *   sum over voxels of w_y (1 - s) (-log q_y) + s / C sum_c w_c (-log q_c), divided by sum of w_y
 */
pons_node *entropy_exclusive(pons_graph *g, const entropy *e, pons_node *x, pons_node *t);
/*
 * Entropy of each channel as torch's binary_cross_entropy_with_logits: with weights v of t = 1, the
 * mean over voxels and channels (or the sum) of
 *   -(v t log sigmoid(x) + (1 - t) log sigmoid(-x))
 */
pons_node *entropy_binary(pons_graph *g, const entropy *e, pons_node *x, pons_node *t);
/* Refuse a smoothing that nothing takes: that of a single class (PONS_CONFIG). */
pons_status entropy_check_smoothing(double smoothing, const pons_task *task, pons_error *err);

#endif
