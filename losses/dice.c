/*
 * dice - one minus the soft Dice coefficient of each class (Milletari et al. 2016,
 * arXiv:1606.04797; MONAI's DiceLoss). dice_term.h has the formula.
 */
#include "dice_term.h"

typedef struct dice {
    dice_term dice;
} dice;

static const pons_option options[] = { DICE_TERM_OPTIONS, PONS_OPTIONS_END };

static pons_status check(const dice_term *d, const pons_task *task, pons_error *err)
{
    if (dice_term_check_alone(d, task, err) != PONS_OK)
        return err->status;
    return d->weight.count == 0 || dice_term_weighs(d, task) ? PONS_OK
                                                             : dice_term_idle_weight(err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const dice *c = config;

    if (classes_check_target(task, err) != PONS_OK || check(&c->dice, task, err) != PONS_OK)
        return err->status;
    *value = dice_term_value(g, &c->dice, task, pons_probabilities(g, logits, target),
                             pons_target_one_hot(g, task, target), voxels_valid(g, target));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(dice, "1.0", "soft Dice", options, operations);
