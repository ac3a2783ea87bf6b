/*
 * dice_ce - soft Dice plus cross-entropy (MONAI's DiceCELoss).
 *
 *   lambda_dice Dice + lambda_ce CE
 *
 * CE of several classes, with q = softmax(logits), class weights w and smoothing s:
 *   sum over voxels of w_y (1 - s) (-log q_y) + s / C sum_c w_c (-log q_c), divided by sum of w_y
 * CE of one class, with the weight v of the foreground (mean over voxels):
 *   -(v t log sigmoid(x) + (1 - t) log sigmoid(-x))
 *
 * The cross-entropy always counts the background. The Dice term takes weights 1 .. C - 1 if it
 * leaves out the background. It takes none if it counts a single class.
 */
#include "overlap.h"

typedef struct dice_ce {
    overlap overlap;
    double lambda_dice, lambda_ce, label_smoothing;
} dice_ce;

static const pons_option options[] = {
    OVERLAP_OPTIONS,
    PONS_REAL(dice_ce, lambda_dice, "1", 0, 1e6, "Factor on the Dice term."),
    PONS_REAL(dice_ce, lambda_ce, "1", 0, 1e6, "Factor on the cross-entropy."),
    PONS_REAL(dice_ce, label_smoothing, "0", 0, 1, "Share of the target spread over all classes."),
    PONS_OPTIONS_END
};

static pons_node *mean_of_voxels(pons_graph *g, pons_node *x)
{
    pons_shape s = pons_shape_of(x);
    double voxels = (double)s.extent[0] * (double)s.extent[1] * (double)s.extent[2]
                  * (double)s.extent[3];

    return pons_div(g, pons_sum_all(g, x), pons_scalar(g, voxels));
}

/*
 * The mean of x over all voxels in the mask, or their sum if 'reduction' is sum. 'weights' are the
 * weights of the mean, NULL if all are equal. The mean is 0 if the mask is empty.
 */
static pons_node *reduce(pons_graph *g, const overlap *o, pons_node *x, pons_node *weights,
                         pons_node *valid)
{
    pons_node *total;

    x = overlap_masked(g, x, valid);
    if (o->reduction == OVERLAP_SUM)
        return overlap_total(g, x);
    if (weights == NULL && valid == NULL)
        return mean_of_voxels(g, x);
    total = overlap_total(g, weights == NULL ? valid : overlap_masked(g, weights, valid));
    if (valid != NULL)
        total = pons_select(g, total, total, pons_scalar(g, 1));
    return pons_div(g, overlap_total(g, x), total);
}

static pons_node *binary(pons_graph *g, const overlap *o, pons_node *x, pons_node *t,
                         pons_node *valid)
{
    double positive = o->weight.count > 0 ? o->weight.item[0] : 1;
    pons_node *hit = pons_mul(g, t, pons_log_sigmoid(g, x));
    pons_node *miss = pons_mul(g, pons_add_scalar(g, pons_neg(g, t), 1),
                               pons_log_sigmoid(g, pons_neg(g, x)));

    return reduce(g, o, pons_neg(g, pons_add(g, pons_scale(g, hit, positive), miss)), NULL, valid);
}

static pons_node *exclusive(pons_graph *g, const dice_ce *c, int classes, pons_node *x,
                            pons_node *t, pons_node *valid)
{
    double smoothing = c->label_smoothing;
    pons_node *weights = overlap_weights(g, &c->overlap, 0, classes);
    pons_node *surprise = pons_neg(g, pons_log_softmax(g, x, 4));
    pons_node *share = pons_scale(g, t, 1 - smoothing);

    if (smoothing > 0)
        share = pons_add_scalar(g, share, smoothing / classes);
    if (weights != NULL)
        share = pons_mul(g, share, weights);
    return reduce(g, &c->overlap, pons_mul(g, share, surprise),
                  weights != NULL ? pons_mul(g, t, weights) : NULL, valid);
}

/* Whether weights change the cross-entropy. A weighted mean cancels one number for all classes. */
static bool entropy_weighs(const overlap *o, const pons_task *task)
{
    return task->classes == 1 || o->weight.count > 1 || o->reduction == OVERLAP_SUM;
}

static pons_status check(const dice_ce *c, const pons_task *task, pons_error *err)
{
    const overlap *o = &c->overlap;

    if (task->target == PONS_TARGET_REGIONS && task->classes > 1)
        return pons_fail(err, PONS_CONFIG,
                         "loss 'dice_ce' cannot learn %d regions: its classes exclude each other\n"
                         "hint: use dice or dice_focal", task->classes);
    if (overlap_check(o, task, task->classes, err) != PONS_OK)
        return err->status;
    return o->weight.count == 0 || overlap_weighs(o, task) || entropy_weighs(o, task)
               ? PONS_OK : overlap_idle_weight(err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const dice_ce *c = config;
    int first = task->classes - overlap_classes(&c->overlap, task);

    if (check(c, task, err) != PONS_OK)
        return err->status;

    pons_node *valid = overlap_valid(g, target);
    pons_node *t = pons_target_one_hot(g, task, target);
    pons_node *dice = overlap_term(g, &c->overlap, task, pons_probabilities(g, logits, target), t,
                                   valid, first);
    pons_node *entropy = task->classes == 1
                             ? binary(g, &c->overlap, logits, t, valid)
                             : exclusive(g, c, task->classes, logits, t, valid);
    *value = pons_add(g, pons_scale(g, dice, c->lambda_dice), pons_scale(g, entropy, c->lambda_ce));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(dice_ce, "1.0", "soft Dice plus cross-entropy", options, operations);
