/*
 * voxels.c - masked sums and means of voxels.
 */
#include "voxels.h"

const char *const reductions[] = { "mean", "sum", NULL };

pons_node *voxels_valid(pons_graph *g, const pons_target *target)
{
    return target->valid == NULL ? NULL : pons_cast(g, target->valid, PONS_F32);
}

pons_node *voxels_masked(pons_graph *g, pons_node *x, pons_node *valid)
{
    return valid == NULL ? x : pons_select(g, valid, x, pons_scalar(g, 0));
}

pons_node *voxels_total(pons_graph *g, pons_node *x)
{
    return pons_sum_all(g, pons_batch_sum(g, x, PONS_BATCH | PONS_SPATIAL | PONS_CHANNEL));
}

static pons_node *mean_of_all(pons_graph *g, pons_node *x)
{
    pons_shape s = pons_shape_of(x);
    double voxels = (double)s.extent[0] * (double)s.extent[1] * (double)s.extent[2]
                  * (double)s.extent[3];

    return pons_div(g, pons_sum_all(g, x), pons_scalar(g, voxels));
}

pons_node *voxels_reduce(pons_graph *g, reduction how, pons_node *x, pons_node *weights,
                         pons_node *valid)
{
    pons_node *total;

    x = voxels_masked(g, x, valid);
    if (how == REDUCTION_SUM)
        return voxels_total(g, x);
    if (weights == NULL && valid == NULL)
        return mean_of_all(g, x);
    total = voxels_total(g, weights == NULL ? valid : voxels_masked(g, weights, valid));
    pons_node *divisor = pons_select(g, total, total, pons_scalar(g, 1));

    return pons_select(g, total, pons_div(g, voxels_total(g, x), divisor), pons_scalar(g, 0));
}

pons_node *voxels_average(pons_graph *g, reduction how, pons_node *x, pons_node *valid)
{
    pons_shape s = pons_shape_of(x);
    pons_node *value = voxels_reduce(g, how, x, NULL, valid);

    if (how == REDUCTION_SUM || s.extent[4] <= 1)
        return value;
    return pons_scale(g, value, 1 / (double)s.extent[4]);
}
