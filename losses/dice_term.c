/*
 * dice_term.c - the Dice term (Milletari et al. 2016, arXiv:1606.04797, as in MONAI's DiceLoss).
 */
#include "dice_term.h"

/* The number of classes in the Dice term. */
static int dice_term_classes(const dice_term *d, const pons_task *task)
{
    return classes_counted(d->overlap.include_background, task);
}

pons_status dice_term_check(const dice_term *d, const pons_task *task, int expected,
                            pons_error *err)
{
    if (classes_check_background(d->overlap.include_background, task, err) != PONS_OK)
        return err->status;
    return classes_check_list("weight", &d->weight, expected, err);
}

pons_status dice_term_check_alone(const dice_term *d, const pons_task *task, pons_error *err)
{
    return dice_term_check(d, task, classes_weighed(&d->weight, d->overlap.include_background,
                                                    task), err);
}

bool dice_term_weighs(const dice_term *d, const pons_task *task)
{
    return d->weight.count > 0 && dice_term_classes(d, task) > 1;
}

pons_status dice_term_idle_weight(pons_error *err)
{
    return pons_option_fail(err, "weight", "it would change nothing: Dice counts one class here, "
                            "and weights are for several\nhint: take it out");
}

pons_node *dice_term_value(pons_graph *g, const dice_term *d, const pons_task *task,
                           pons_node *probabilities, pons_node *target, pons_node *valid)
{
    const overlap *o = &d->overlap;
    int counted = dice_term_classes(d, task);
    overlap_sums s = overlap_sum(g, o, d->squared_pred, probabilities, target, valid);
    pons_node *below = pons_add(g, s.predicted, s.wanted);

    if (d->jaccard)
        below = pons_scale(g, pons_sub(g, below, s.both), 2);

    pons_node *dice = overlap_ratio(g, o, pons_scale(g, s.both, 2), below);
    dice = classes_kept(g, o->include_background, task, dice);
    pons_node *value = pons_add_scalar(g, pons_neg(g, dice), 1);

    if (dice_term_weighs(d, task))
        value = pons_mul(g, value, classes_vector(g, &d->weight,
                                                  classes_first_weight(&d->weight, counted),
                                                  counted));
    return overlap_reduce(g, o, value);
}
