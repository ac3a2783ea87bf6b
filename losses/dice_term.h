/*
 * dice_term.h - the options and the value of the Dice term in dice, dice_ce, dice_focal and nnunet.
 *
 * The struct is the first member of a plugin's configuration, as that of overlap.h is its own.
 */
#ifndef LOSSES_DICE_TERM_H
#define LOSSES_DICE_TERM_H

#include "overlap.h"

typedef struct dice_term {
    overlap overlap;
    bool squared_pred, jaccard;
    pons_reals weight;
} dice_term;

#define DICE_TERM_OPTIONS                                                                         \
    OVERLAP_OPTIONS,                                                                              \
    PONS_FLAG(dice_term, squared_pred, "no",                                                      \
              "Square probabilities and target in the denominator."),                             \
    PONS_FLAG(dice_term, jaccard, "no", "Intersection over union instead of Dice."),              \
    PONS_REALS(dice_term, weight, "", 0, 1e6, "Factor on each class; one number stands for all; " \
               "Dice of a single class has none, and reads none of a background left out.")

/* Refuse a number of weights other than 0, 1 and 'expected', and a background of regions. */
pons_status dice_term_check(const dice_term *d, const pons_task *task, int expected,
                            pons_error *err);
/* The same where nothing but Dice has the weights: a background left out may have one or not. */
pons_status dice_term_check_alone(const dice_term *d, const pons_task *task, pons_error *err);
/*
 * Whether the Dice term is multiplied by the weights. As in MONAI's DiceLoss it is if it counts
 * several classes. On a single class a weight would only be a factor of the whole term.
 */
bool dice_term_weighs(const dice_term *d, const pons_task *task);
/* Refuse weights that do not change the value (PONS_CONFIG). */
pons_status dice_term_idle_weight(pons_error *err);
/*
 * The Dice term of a class, with tp = sum p g, P = sum p (or p^2) and G = sum g (or g^2) over the
 * voxels of a case (batch: of all cases), is
 *   1 - (2 tp + smooth_nr) / (P + G + smooth_dr)            jaccard: 2 (P + G - tp) below
 *
 * The term of one of several classes is multiplied by its weight, then reduced.
 * probabilities, target: [N, D, H, W, C].
 */
pons_node *dice_term_value(pons_graph *g, const dice_term *d, const pons_task *task,
                           pons_node *probabilities, pons_node *target, pons_node *valid);

#endif
