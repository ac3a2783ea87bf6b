/*
 * dice_ce - soft Dice plus cross-entropy (MONAI's DiceCELoss).
 *
 *   lambda_dice Dice + lambda_ce CE
 *
 * entropy.h has the formulas of the cross-entropy. That of one class is binary, with the weight on
 * its foreground.
 *
 * The cross-entropy always counts the background. The Dice term takes weights 1 .. C - 1 if it
 * leaves out the background. It takes none if it counts a single class.
 */
#include "dice_term.h"
#include "entropy.h"

typedef struct dice_ce {
    dice_term dice;
    double lambda_dice, lambda_ce, label_smoothing;
} dice_ce;

static const pons_option options[] = {
    DICE_TERM_OPTIONS,
    PONS_REAL(dice_ce, lambda_dice, "1", 0, 1e6, "Factor on the Dice term."),
    PONS_REAL(dice_ce, lambda_ce, "1", 0, 1e6, "Factor on the cross-entropy."),
    PONS_REAL(dice_ce, label_smoothing, "0", 0, 1, "Share of the target spread over all classes."),
    PONS_OPTIONS_END
};

/* Whether weights change the cross-entropy. A weighted mean cancels one number for all classes. */
static bool entropy_weighs(const dice_term *d, const pons_task *task)
{
    return task->classes == 1 || d->weight.count > 1 || d->overlap.reduction == REDUCTION_SUM;
}

static pons_status check(const dice_ce *c, const pons_task *task, pons_error *err)
{
    const dice_term *d = &c->dice;

    if (task->target == PONS_TARGET_REGIONS && task->classes > 1)
        return pons_fail(err, PONS_CONFIG,
                         "loss 'dice_ce' cannot learn %d regions: its classes exclude each other\n"
                         "hint: use nnunet (Dice and binary cross-entropy), dice or dice_focal",
                         task->classes);
    if (dice_term_check(d, task, task->classes, err) != PONS_OK
        || entropy_check_smoothing(c->label_smoothing, task, err) != PONS_OK)
        return err->status;
    return d->weight.count == 0 || dice_term_weighs(d, task) || entropy_weighs(d, task)
               ? PONS_OK : dice_term_idle_weight(err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const dice_ce *c = config;

    if (classes_check_target(task, err) != PONS_OK || check(c, task, err) != PONS_OK)
        return err->status;

    pons_node *valid = voxels_valid(g, target);
    pons_node *t = pons_target_one_hot(g, task, target);
    pons_node *dice = dice_term_value(g, &c->dice, task, pons_probabilities(g, logits, target), t,
                                      valid);
    entropy e = { (reduction)c->dice.overlap.reduction, c->label_smoothing,
                  classes_vector(g, &c->dice.weight, 0, task->classes), valid };
    pons_node *entropy = task->classes == 1 ? entropy_binary(g, &e, logits, t)
                                            : entropy_exclusive(g, &e, logits, t);
    *value = pons_add(g, pons_scale(g, dice, c->lambda_dice), pons_scale(g, entropy, c->lambda_ce));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(dice_ce, "1.0", "soft Dice plus cross-entropy", options, operations);
