/*
 * dice - one minus the soft Dice coefficient of each class (Milletari et al. 2016,
 * arXiv:1606.04797; MONAI's DiceLoss). overlap.h has the formula.
 */
#include "overlap.h"

typedef struct dice {
    overlap overlap;
} dice;

static const pons_option options[] = { OVERLAP_OPTIONS, PONS_OPTIONS_END };

static pons_status check(const overlap *o, const pons_task *task, pons_error *err)
{
    if (overlap_check(o, task, overlap_classes(o, task), err) != PONS_OK)
        return err->status;
    return o->weight.count == 0 || overlap_weighs(o, task) ? PONS_OK : overlap_idle_weight(err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const dice *c = config;

    if (check(&c->overlap, task, err) != PONS_OK)
        return err->status;
    *value = overlap_term(g, &c->overlap, task, pons_probabilities(g, logits, target),
                          pons_target_one_hot(g, task, target), overlap_valid(g, target), 0);
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(dice, "1.0", "soft Dice", options, operations);
