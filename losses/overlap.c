/*
 * overlap.c - the Dice term (Milletari et al. 2016, arXiv:1606.04797, as in MONAI's DiceLoss).
 *
 * Channel 0 is dropped from the sums instead of the volumes. The value is the same, and all work on
 * voxels is one pass.
 */
#include "overlap.h"

const char *const overlap_reductions[] = { "mean", "sum", NULL };

int overlap_classes(const overlap *o, const pons_task *task)
{
    return o->include_background || task->classes == 1 ? task->classes : task->classes - 1;
}

pons_status overlap_check(const overlap *o, const pons_task *task, int expected, pons_error *err)
{
    if (!o->include_background && task->target == PONS_TARGET_REGIONS)
        return pons_option_fail(err, "include_background", "found no, expected yes: regions have "
                                "no background");
    if (o->weight.count > 1 && expected == 1)
        return pons_option_fail(err, "weight", "found %d numbers, expected 1", o->weight.count);
    if (o->weight.count > 1 && o->weight.count != expected)
        return pons_option_fail(err, "weight", "found %d numbers, expected 1 or %d",
                                o->weight.count, expected);
    return PONS_OK;
}

bool overlap_weighs(const overlap *o, const pons_task *task)
{
    return o->weight.count > 0 && overlap_classes(o, task) > 1;
}

pons_status overlap_idle_weight(pons_error *err)
{
    return pons_option_fail(err, "weight", "it would change nothing: Dice counts one class here, "
                            "and weights are for several\nhint: take it out");
}

pons_node *overlap_weights(pons_graph *g, const overlap *o, int first, int count)
{
    if (o->weight.count == 0)
        return NULL;
    if (o->weight.count == 1)
        return pons_scalar(g, o->weight.item[0]);

    pons_node *index = pons_iota(g, 1, 0, count);
    pons_node *weights = pons_scalar(g, o->weight.item[first]);
    for (int i = 1; i < count; i++)
        weights = pons_select(g, pons_equal(g, index, pons_scalar(g, i)),
                              pons_scalar(g, o->weight.item[first + i]), weights);
    return weights;
}

pons_node *overlap_valid(pons_graph *g, const pons_target *target)
{
    return target->valid == NULL ? NULL : pons_cast(g, target->valid, PONS_F32);
}

pons_node *overlap_masked(pons_graph *g, pons_node *x, pons_node *valid)
{
    return valid == NULL ? x : pons_select(g, valid, x, pons_scalar(g, 0));
}

pons_node *overlap_counted(pons_graph *g, const overlap *o, const pons_task *task, pons_node *x)
{
    if (overlap_classes(o, task) == task->classes)
        return x;

    pons_shape s = pons_shape_of(x);
    s.extent[4] -= 1;
    return pons_crop(g, x, (int64_t[]){ 0, 0, 0, 0, 1 }, s.extent, NULL);
}

/* The sum over the voxels of each case, or of all cases. */
static pons_node *sum_voxels(pons_graph *g, const overlap *o, pons_node *x)
{
    return o->batch ? pons_batch_sum(g, x, PONS_SPATIAL | PONS_BATCH)
                    : pons_sum(g, x, PONS_SPATIAL);
}

pons_node *overlap_total(pons_graph *g, pons_node *x)
{
    return pons_sum_all(g, pons_batch_sum(g, x, PONS_BATCH | PONS_SPATIAL | PONS_CHANNEL));
}

pons_node *overlap_term(pons_graph *g, const overlap *o, const pons_task *task,
                        pons_node *probabilities, pons_node *target, pons_node *valid,
                        int first_weight)
{
    pons_node *p = overlap_masked(g, probabilities, valid);
    pons_node *t = overlap_masked(g, target, valid);
    pons_node *both = sum_voxels(g, o, pons_mul(g, p, t));
    pons_node *predicted = sum_voxels(g, o, o->squared_pred ? pons_square(g, p) : p);
    pons_node *wanted = sum_voxels(g, o, o->squared_pred ? pons_square(g, t) : t);
    pons_node *below = pons_add(g, predicted, wanted);

    if (o->jaccard)
        below = pons_scale(g, pons_sub(g, below, both), 2);

    pons_node *dice = pons_div(g, pons_add_scalar(g, pons_scale(g, both, 2), o->smooth_nr),
                               pons_add_scalar(g, below, o->smooth_dr));
    pons_node *value = pons_add_scalar(g, pons_neg(g, overlap_counted(g, o, task, dice)), 1);

    if (overlap_weighs(o, task))
        value = pons_mul(g, value, overlap_weights(g, o, first_weight, overlap_classes(o, task)));
    if (o->reduction == OVERLAP_MEAN)
        return pons_mean_all(g, value);
    return o->batch ? pons_sum_all(g, value) : overlap_total(g, value);
}
