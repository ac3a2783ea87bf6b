/*
 * overlap.c - soft counts of overlapping volumes, each in one pass over the voxels.
 */
#include "overlap.h"

/* The sum over the voxels of each case, or of all cases. */
static pons_node *sum_voxels(pons_graph *g, const overlap *o, pons_node *x)
{
    return o->batch ? pons_batch_sum(g, x, PONS_SPATIAL | PONS_BATCH)
                    : pons_sum(g, x, PONS_SPATIAL);
}

overlap_sums overlap_sum(pons_graph *g, const overlap *o, bool squared, pons_node *probabilities,
                         pons_node *target, pons_node *valid)
{
    pons_node *p = voxels_masked(g, probabilities, valid);
    pons_node *t = voxels_masked(g, target, valid);
    overlap_sums s;

    s.both = sum_voxels(g, o, pons_mul(g, p, t));
    s.predicted = sum_voxels(g, o, squared ? pons_square(g, p) : p);
    s.wanted = sum_voxels(g, o, squared ? pons_square(g, t) : t);
    return s;
}

pons_node *overlap_ratio(pons_graph *g, const overlap *o, pons_node *above, pons_node *below)
{
    return pons_div(g, pons_add_scalar(g, above, o->smooth_nr),
                    pons_add_scalar(g, below, o->smooth_dr));
}

pons_node *overlap_reduce(pons_graph *g, const overlap *o, pons_node *value)
{
    if (o->reduction == REDUCTION_MEAN)
        return pons_mean_all(g, value);
    return o->batch ? pons_sum_all(g, value) : voxels_total(g, value);
}
