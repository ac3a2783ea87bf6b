/*
 * dice_focal - soft Dice plus focal loss (Lin et al. 2017, arXiv:1708.02002;
 * MONAI's DiceFocalLoss).
 *
 *   lambda_dice Dice + lambda_focal Focal
 *
 * The focal term is binary in every channel (sigmoid), also if the Dice term uses softmax. With
 * s = sigmoid of the logit x towards the target t, it is
 *   (1 - s)^gamma (-log s)
 *
 * Its factors are alpha for t = 1 and 1 - alpha for t = 0, if alpha is given, and the class weight.
 * A single class has a weight too, unlike in the Dice term. The reduction is the mean over cases,
 * classes and voxels, or the sum over cases and classes.
 */
#include "overlap.h"

typedef struct dice_focal {
    overlap overlap;
    double lambda_dice, lambda_focal, gamma;
    pons_reals alpha;
} dice_focal;

static const pons_option options[] = {
    OVERLAP_OPTIONS,
    PONS_REAL(dice_focal, lambda_dice, "1", 0, 1e6, "Factor on the Dice term."),
    PONS_REAL(dice_focal, lambda_focal, "1", 0, 1e6, "Factor on the focal term."),
    PONS_REAL(dice_focal, gamma, "2", 0, 100, "How strongly easy voxels are played down."),
    PONS_REALS(dice_focal, alpha, "", 0, 1, "Factor on foreground; background gets 1 - alpha.",
               .count_max = 1),
    PONS_OPTIONS_END
};

/* The focal loss of every voxel and channel. */
static pons_node *voxelwise(pons_graph *g, const dice_focal *c, pons_node *x, pons_node *t)
{
    pons_node *side = pons_add_scalar(g, pons_scale(g, t, 2), -1);
    pons_node *ease = pons_log_sigmoid(g, pons_neg(g, pons_mul(g, x, side)));
    pons_node *entropy = pons_sub(g, pons_sub(g, x, pons_mul(g, x, t)), pons_log_sigmoid(g, x));
    pons_node *value = pons_mul(g, pons_exp(g, pons_scale(g, ease, c->gamma)), entropy);

    if (c->alpha.count == 0)
        return value;

    double alpha = c->alpha.item[0];
    return pons_mul(g, value, pons_add_scalar(g, pons_scale(g, t, 2 * alpha - 1), 1 - alpha));
}

static pons_node *focal(pons_graph *g, const dice_focal *c, const pons_task *task, pons_node *x,
                        pons_node *t, pons_node *valid)
{
    const overlap *o = &c->overlap;
    pons_shape s = pons_shape_of(x);
    pons_node *value = voxelwise(g, c, x, t);
    pons_node *count = pons_scalar(g, (double)s.extent[1] * (double)s.extent[2] *
                                    (double)s.extent[3]);

    if (valid != NULL) {
        value = overlap_masked(g, value, valid);
        count = pons_max(g, pons_sum(g, valid, PONS_SPATIAL), pons_scalar(g, 1));
    }
    pons_node *mean = pons_div(g, pons_sum(g, value, PONS_SPATIAL), count);
    pons_node *weights = overlap_weights(g, o, 0, overlap_classes(o, task));

    mean = overlap_counted(g, o, task, mean);
    if (weights != NULL)
        mean = pons_mul(g, mean, weights);
    return o->reduction == OVERLAP_SUM ? overlap_total(g, mean) : pons_mean_all(g, mean);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const dice_focal *c = config;

    if (overlap_check(&c->overlap, task, overlap_classes(&c->overlap, task), err) != PONS_OK)
        return err->status;

    pons_node *valid = overlap_valid(g, target);
    pons_node *t = pons_target_one_hot(g, task, target);
    pons_node *dice = overlap_term(g, &c->overlap, task, pons_probabilities(g, logits, target), t,
                                   valid, 0);
    pons_node *other = focal(g, c, task, logits, t, valid);
    *value = pons_add(g, pons_scale(g, dice, c->lambda_dice),
                      pons_scale(g, other, c->lambda_focal));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(dice_focal, "1.0", "soft Dice plus focal loss", options, operations);
