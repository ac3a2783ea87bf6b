/*
 * entropy.c - cross-entropy from logits, so that no probability is rounded to 0 or 1.
 */
#include "entropy.h"

pons_node *entropy_exclusive(pons_graph *g, const entropy *e, pons_node *x, pons_node *t)
{
    double classes = (double)pons_shape_of(x).extent[4], smoothing = e->label_smoothing;
    pons_node *surprise = pons_neg(g, pons_log_softmax(g, x, 4));
    pons_node *share = pons_scale(g, t, 1 - smoothing);

    if (smoothing > 0)
        share = pons_add_scalar(g, share, smoothing / classes);
    if (e->weights != NULL)
        share = pons_mul(g, share, e->weights);
    return voxels_reduce(g, e->reduction, pons_mul(g, share, surprise),
                         e->weights != NULL ? pons_mul(g, t, e->weights) : NULL, e->valid);
}

pons_node *entropy_binary(pons_graph *g, const entropy *e, pons_node *x, pons_node *t)
{
    pons_node *hit = pons_mul(g, t, pons_log_sigmoid(g, x));
    pons_node *miss = pons_mul(g, pons_add_scalar(g, pons_neg(g, t), 1),
                               pons_log_sigmoid(g, pons_neg(g, x)));

    if (e->weights != NULL)
        hit = pons_mul(g, hit, e->weights);
    return voxels_average(g, e->reduction, pons_neg(g, pons_add(g, hit, miss)), e->valid);
}

pons_status entropy_check_smoothing(double smoothing, const pons_task *task, pons_error *err)
{
    if (smoothing == 0 || task->classes > 1)
        return PONS_OK;
    return pons_option_fail(err, "label_smoothing", "found %g, expected 0: a single class has no "
                            "others to spread the target over", smoothing);
}
