/*
 * generalized_dice - one minus the generalised Dice coefficient (Sudre et al. 2017,
 * arXiv:1707.03237; MONAI's GeneralizedDiceLoss). The classes are added up before the division.
 *
 *   1 - (2 sum_c w_c tp_c + smooth_nr) / (sum_c w_c (P_c + G_c) + smooth_dr)
 *
 * tp, P and G are those of dice_term.h. The weight w is 1 / G^2 (square), 1 / G (simple) or 1
 * (uniform). A class without voxels gets the largest weight of the case, or of all cases (batch).
 */
#include "overlap.h"

enum { W_SQUARE, W_SIMPLE, W_UNIFORM };

static const char *const w_types[] = { "square", "simple", "uniform", NULL };

typedef struct generalized_dice {
    overlap overlap;
    int w_type;
} generalized_dice;

static const pons_option options[] = {
    OVERLAP_OPTIONS,
    PONS_CHOICE(generalized_dice, w_type, "square", w_types,
                "Power of a class's volume that divides it: square, simple or uniform."),
    PONS_OPTIONS_END
};

/* The weights of classes of these volumes, [N or 1, 1, 1, 1, C]. */
static pons_node *weights_of(pons_graph *g, int w_type, pons_node *volume)
{
    pons_node *present = pons_greater(g, volume, pons_scalar(g, 0));
    pons_node *weight = pons_reciprocal(g, pons_max(g, volume, pons_scalar(g, 1)));

    if (w_type == W_SQUARE)
        weight = pons_square(g, weight);
    weight = pons_select(g, present, weight, pons_scalar(g, 0));
    return pons_select(g, present, weight, pons_reduce_max(g, weight, PONS_CHANNEL));
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const generalized_dice *c = config;
    const overlap *o = &c->overlap;

    if (classes_check_target(task, err) != PONS_OK
        || classes_check_background(o->include_background, task, err) != PONS_OK)
        return err->status;

    overlap_sums s = overlap_sum(g, o, false, pons_probabilities(g, logits, target),
                                 pons_target_one_hot(g, task, target), voxels_valid(g, target));
    pons_node *volume = classes_kept(g, o->include_background, task, s.wanted);
    pons_node *above = classes_kept(g, o->include_background, task, s.both);
    pons_node *below = pons_add(g, volume, classes_kept(g, o->include_background, task,
                                                        s.predicted));

    if (c->w_type != W_UNIFORM) {
        pons_node *weights = weights_of(g, c->w_type, volume);
        above = pons_mul(g, above, weights);
        below = pons_mul(g, below, weights);
    }
    above = pons_scale(g, pons_sum(g, above, PONS_CHANNEL), 2);
    below = pons_sum(g, below, PONS_CHANNEL);
    *value = overlap_reduce(g, o, pons_add_scalar(g, pons_neg(g, overlap_ratio(g, o, above,
                                                                               below)), 1));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(generalized_dice, "1.0", "generalised Dice", options, operations);
