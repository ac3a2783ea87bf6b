/*
 * overlap.h - the options and the value of the Dice term in dice, dice_ce and dice_focal.
 *
 * The struct is the first member of each plugin's configuration, so all share its option rows.
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
    PONS_FLAG(overlap, include_background, "yes", "Whether channel 0 counts."),                   \
    PONS_FLAG(overlap, squared_pred, "no",                                                        \
              "Square probabilities and target in the denominator."),                             \
    PONS_FLAG(overlap, jaccard, "no", "Intersection over union instead of Dice."),                \
    PONS_FLAG(overlap, batch, "no", "Sum over the cases of a micro-batch before dividing."),      \
    PONS_REAL(overlap, smooth_nr, "1e-5", 0, 1e6, "Added to the numerator."),                     \
    PONS_REAL(overlap, smooth_dr, "1e-5", 0, 1e6, "Added to the denominator."),                   \
    PONS_REALS(overlap, weight, "", 0, 1e6, "Factor on each class; one number stands for all; "   \
               "Dice of a single class has none."),                                               \
    PONS_CHOICE(overlap, reduction, "mean", overlap_reductions, "Over cases and classes.")

/* The number of classes in the Dice term: all, or all but the first. */
int overlap_classes(const overlap *o, const pons_task *task);
/* Refuse a number of weights other than 0, 1 and 'expected' (PONS_CONFIG). */
pons_status overlap_check(const overlap *o, const pons_task *task, int expected, pons_error *err);
/*
 * Whether the Dice term is multiplied by the weights. As in MONAI's DiceLoss it is if it counts
 * several classes. On a single class a weight would only be a factor of the whole term.
 */
bool overlap_weighs(const overlap *o, const pons_task *task);
/* Refuse weights that do not change the value (PONS_CONFIG). */
pons_status overlap_idle_weight(pons_error *err);
/* The target's mask as f32 [N, D, H, W, 1], or NULL if every voxel counts. */
pons_node *overlap_valid(pons_graph *g, const pons_target *target);
/* x inside the mask and 0 outside, even if x is NaN there. Without a mask it is x. */
pons_node *overlap_masked(pons_graph *g, pons_node *x, pons_node *valid);
/*
 * The Dice term of a class, with tp = sum p g, P = sum p (or p^2) and G = sum g (or g^2) over the
 * voxels of a case (batch: of all cases), is
 *   1 - (2 tp + smooth_nr) / (P + G + smooth_dr)            jaccard: 2 (P + G - tp) below
 *
 * With several classes it is multiplied by weight[first_weight + class]. Then it is reduced.
 * probabilities, target: [N, D, H, W, C].
 */
pons_node *overlap_term(pons_graph *g, const overlap *o, const pons_task *task,
                        pons_node *probabilities, pons_node *target, pons_node *valid,
                        int first_weight);
/* The sum of all elements of x [N, .., .., .., C], over all replicas if the batch is joined. */
pons_node *overlap_total(pons_graph *g, pons_node *x);
/* Weights first .. first + count - 1 as [count]; a scalar if one is given, NULL if none. */
pons_node *overlap_weights(pons_graph *g, const overlap *o, int first, int count);
/* The channels of the Dice term in a small tensor [N, 1, 1, 1, C]. */
pons_node *overlap_counted(pons_graph *g, const overlap *o, const pons_task *task, pons_node *x);

#endif
