/*
 * dice_focal - soft Dice plus focal loss (MONAI's DiceFocalLoss).
 *
 *   lambda_dice Dice + lambda_focal Focal
 *
 * The focal term is binary in every channel, also if the Dice term uses softmax. A single class has
 * a weight in it, unlike in the Dice term.
 */
#include "dice_term.h"
#include "focal_term.h"

typedef struct dice_focal {
    dice_term dice;
    double lambda_dice, lambda_focal, gamma;
    pons_reals alpha;
} dice_focal;

static const pons_option options[] = {
    DICE_TERM_OPTIONS,
    PONS_REAL(dice_focal, lambda_dice, "1", 0, 1e6, "Factor on the Dice term."),
    PONS_REAL(dice_focal, lambda_focal, "1", 0, 1e6, "Factor on the focal term."),
    PONS_REAL(dice_focal, gamma, "2", 0, 100, "How strongly easy voxels are played down."),
    PONS_REALS(dice_focal, alpha, "", 0, 1, "Factor on foreground; background gets 1 - alpha.",
               .count_max = 1),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const dice_focal *c = config;
    const overlap *o = &c->dice.overlap;
    const focal_term f = { o->include_background, false, (reduction)o->reduction, c->gamma,
                           c->alpha, c->dice.weight };

    if (classes_check_target(task, err) != PONS_OK
        || dice_term_check_alone(&c->dice, task, err) != PONS_OK)
        return err->status;

    pons_node *valid = voxels_valid(g, target);
    pons_node *t = pons_target_one_hot(g, task, target);
    pons_node *dice = dice_term_value(g, &c->dice, task, pons_probabilities(g, logits, target), t,
                                      valid);
    pons_node *focal = focal_term_value(g, &f, task, logits, t, valid);
    *value = pons_add(g, pons_scale(g, dice, c->lambda_dice),
                      pons_scale(g, focal, c->lambda_focal));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(dice_focal, "1.0", "soft Dice plus focal loss", options, operations);
