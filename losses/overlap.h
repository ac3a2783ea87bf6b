/*
 * overlap.h - what dice, dice_ce and dice_focal share: the options and the value of the Dice term.
 *
 * The struct is the first member of each plugin's configuration, so its option rows hold for all.
 */
#ifndef LOSSES_OVERLAP_H
#define LOSSES_OVERLAP_H

#include <pons/loss.h>

typedef enum overlap_reduction { OVERLAP_MEAN, OVERLAP_SUM } overlap_reduction;

typedef struct overlap {
    bool include_background, squared_pred, jaccard, batch;
    double smooth_nr, smooth_dr;
    pons_reals weight;
    int reduction;
} overlap;

extern const char *const overlap_reductions[];

#define OVERLAP_OPTIONS                                                                           \
    PONS_FLAG(overlap, include_background, yes, "Whether channel 0 counts."),                     \
    PONS_FLAG(overlap, squared_pred, no, "Square probabilities and target in the denominator."),  \
    PONS_FLAG(overlap, jaccard, no, "Intersection over union instead of Dice."),                  \
    PONS_FLAG(overlap, batch, no, "Sum over the cases of a micro-batch before dividing."),        \
    PONS_REAL(overlap, smooth_nr, 1e-5, 0, 1e6, "Added to the numerator."),                       \
    PONS_REAL(overlap, smooth_dr, 1e-5, 0, 1e6, "Added to the denominator."),                     \
    PONS_REALS(overlap, weight, "", 0, 1e6, "Factor on each class; one number stands for all; "   \
               "Dice of a single class has none."),                                               \
    PONS_CHOICE(overlap, reduction, mean, overlap_reductions, "Over cases and classes.")

/* The classes that the Dice term counts: all, or all but the first. */
int overlap_classes(const overlap *o, const pons_task *task);
/* PONS_CONFIG unless there are no weights, one, or 'expected'. */
pons_status overlap_check(const overlap *o, const pons_task *task, int expected, pons_error *err);
/*
 * Whether the Dice term is multiplied by the weights: as in MONAI's DiceLoss where it counts
 * several classes, which they weigh against each other. Alone it is no different for a factor on
 * all of it.
 */
bool overlap_weighs(const overlap *o, const pons_task *task);
/* PONS_CONFIG: weights are given, and the value is the same without them. */
pons_status overlap_idle_weight(pons_error *err);
/* The target's mask as f32 [N, D, H, W, 1]; NULL: every voxel counts. */
pons_node *overlap_valid(pons_graph *g, const pons_target *target);
/* x where the mask counts the voxel, else 0, whatever x is there; all of x without a mask. */
pons_node *overlap_masked(pons_graph *g, pons_node *x, pons_node *valid);
/*
 * With tp = sum p g, P = sum p (or p^2), G = sum g over the voxels of a case (batch: of all cases):
 *   1 - (2 tp + smooth_nr) / (P + G + smooth_dr)            jaccard: 2 (P + G - tp) below
 * per class, times weight[first_weight + class] if there are several, reduced.
 * probabilities, target: [N, D, H, W, C].
 */
pons_node *overlap_term(pons_graph *g, const overlap *o, const pons_task *task,
                        pons_node *probabilities, pons_node *target, pons_node *valid,
                        int first_weight);
/* The sum of x [N, .., .., .., C] over the batch and all in it, of all replicas if joined. */
pons_node *overlap_total(pons_graph *g, pons_node *x);
/* weight[first ..] as [count]; NULL where no weights are given. */
pons_node *overlap_weights(pons_graph *g, const overlap *o, int first, int count);
/* Channels that count of a small tensor [N, 1, 1, 1, C]. */
pons_node *overlap_counted(pons_graph *g, const overlap *o, const pons_task *task, pons_node *x);

#endif
