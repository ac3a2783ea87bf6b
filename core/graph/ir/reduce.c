/*
 * reduce.c - sums, extremes and moments over axes, and the softmax, which is composed of them.
 */
#include "graph/ir/ir_internal.h"

/* The shape of 'x' after a reduction over 'axes', which stay with extent 1. */
static pons_shape reduced_shape(pons_shape s, unsigned axes)
{
    for (int i = 0; i < s.rank; i++)
        if ((axes & PONS_AXIS(i)) != 0)
            s.extent[i] = 1;
    return s;
}

/*
 * Whether a reduction over 'axes' changes nothing. In an update a sum over one element stays, since
 * it makes a number per tensor of a number per element (R17).
 */
static bool nothing_to_reduce(const pons_node *x, unsigned axes)
{
    return x->graph->section != SECTION_UPDATE && x->type == PONS_F32 &&
           shape_equal(reduced_shape(x->shape, axes), x->shape);
}

static pons_node *reduce_node(pons_graph *g, int kind, pons_node *x, unsigned axes)
{
    node_attribute a = { .axes = axes };

    if (!inputs_given(g, kind, 1, &x) || !axes_valid(g, kind, x, axes))
        return g->failed;
    if (nothing_to_reduce(x, axes))
        return x;
    return node_new(g, kind, PONS_F32, reduced_shape(x->shape, axes), 1, &x, &a);
}

pons_node *pons_sum(pons_graph *g, pons_node *x, unsigned axes)
{
    return reduce_node(g, NODE_SUM, x, axes);
}

pons_node *pons_reduce_max(pons_graph *g, pons_node *x, unsigned axes)
{
    return reduce_node(g, NODE_MAXIMUM, x, axes);
}

pons_node *pons_reduce_min(pons_graph *g, pons_node *x, unsigned axes)
{
    return reduce_node(g, NODE_MINIMUM, x, axes);
}

pons_node *pons_mean(pons_graph *g, pons_node *x, unsigned axes)
{
    pons_node *sum = pons_sum(g, x, axes);

    if (node_failed(sum))
        return g->failed;
    return pons_div(g, sum, pons_scalar(g, (double)shape_count(x->shape) /
                                         (double)shape_count(sum->shape)));
}

pons_node *pons_sum_all(pons_graph *g, pons_node *x)
{
    if (!inputs_given(g, NODE_SUM, 1, &x))
        return g->failed;
    return pons_reshape(g, pons_sum(g, x, axes_all(x->shape.rank)), (pons_shape){ .rank = 0 });
}

pons_node *pons_mean_all(pons_graph *g, pons_node *x)
{
    if (!inputs_given(g, NODE_SUM, 1, &x))
        return g->failed;
    return pons_div(g, pons_sum_all(g, x), pons_scalar(g, (double)shape_count(x->shape)));
}

pons_node *pons_arg_max(pons_graph *g, pons_node *x, int axis)
{
    node_attribute a = { .axis = axis };

    if (!inputs_given(g, NODE_ARG_MAX, 1, &x))
        return g->failed;
    if (axis < 0 || axis >= x->shape.rank)
        return node_refuse(g, NODE_ARG_MAX, "axis %d of %d", axis, x->shape.rank);
    return node_new(g, NODE_ARG_MAX, PONS_I32, reduced_shape(x->shape, PONS_AXIS(axis)), 1, &x, &a);
}

static pons_node *node_minmax_gradient(pons_graph *g, pons_node *x, pons_node *dy, unsigned axes,
                                       bool minimum)
{
    node_attribute a = { .extreme = { axes, minimum } };
    pons_node *in[] = { x, dy };

    return node_new(g, NODE_REDUCE_MINMAX_GRADIENT, PONS_F32, x->shape, 2, in, &a);
}

/* ---- moments --------------------------------------------------------------------------------- */

void pons_moments(pons_graph *g, pons_node *x, unsigned axes, int groups, pons_node **mean,
                  pons_node **variance)
{
    node_attribute a = { .moments = { axes, groups } };
    pons_node *m;
    int64_t channels;
    unsigned last;

    *mean = *variance = g->failed;
    if (!inputs_given(g, NODE_MOMENTS, 1, &x) || !axes_valid(g, NODE_MOMENTS, x, axes))
        return;
    channels = x->shape.rank > 0 ? x->shape.extent[x->shape.rank - 1] : 1;
    last = x->shape.rank > 0 ? PONS_AXIS(x->shape.rank - 1) : 0;
    if (groups < 0 || (groups > 0 && channels % groups != 0)) {
        node_refuse(g, NODE_MOMENTS, "%lld channels do not divide into %d groups",
                    (long long)channels, groups);
        return;
    }
    if (groups > 0)
        a.moments.axes = axes & ~last;
    m = node_new(g, NODE_MOMENTS, PONS_F32, reduced_shape(x->shape, a.moments.axes), 1, &x, &a);
    *mean = m;
    *variance = node_new(g, NODE_SECOND, PONS_F32, m->shape, 1, &m, NULL);
}

/* Sum the last axis within groups, and give each channel the sum of its group. */
static pons_node *sum_in_groups(pons_graph *g, pons_node *d, int groups)
{
    pons_shape apart = d->shape;
    int last = d->shape.rank - 1;
    pons_node *sum;

    if (groups == 0)
        return d;
    if (last + 1 >= PONS_RANK_MAX)
        return node_refuse(g, NODE_MOMENTS, "no gradient of groups with %d axes", last + 1);
    apart.rank = last + 2;
    apart.extent[last] = groups;
    apart.extent[last + 1] = d->shape.extent[last] / groups;
    sum = pons_sum(g, pons_reshape(g, d, apart), PONS_AXIS(last + 1));
    return pons_reshape(g, pons_broadcast(g, sum, apart), d->shape);
}

/* dmean / n + 2 dvariance (x - mean) / n. The factors per channel are nodes of their own (R14). */
pons_node *moments_gradient(pons_graph *g, pons_node *m, pons_node *dmean, pons_node *dvariance)
{
    pons_node *x = m->input[0], *dx = NULL;
    int groups = m->attribute.moments.groups;
    double n = (double)shape_count(x->shape) / (double)shape_count(m->shape);

    if (groups > 0)
        n *= (double)x->shape.extent[x->shape.rank - 1] / groups;
    if (dvariance != NULL) {
        pons_node *factor = pons_scale(g, sum_in_groups(g, dvariance, groups), 2 / n);

        dx = pons_mul(g, pons_sub(g, x, m), factor);
    }
    if (dmean != NULL) {
        pons_node *share = pons_scale(g, sum_in_groups(g, dmean, groups), 1 / n);

        dx = dx != NULL ? pons_add(g, dx, share) : share;
    }
    return node_repeat(g, dx, x->shape);
}

/* ---- softmax: the maximum only keeps exp in range, so it takes no gradient ------------------- */

static pons_node *below_maximum(pons_graph *g, pons_node *x, int axis)
{
    if (!inputs_given(g, NODE_MAXIMUM, 1, &x))
        return g->failed;
    if (axis < 0 || axis >= x->shape.rank)
        return node_refuse(g, NODE_MAXIMUM, "softmax over axis %d of %d", axis, x->shape.rank);
    return pons_sub(g, x, pons_stop_gradient(g, pons_reduce_max(g, x, PONS_AXIS(axis))));
}

pons_node *pons_softmax(pons_graph *g, pons_node *x, int axis)
{
    pons_node *e = pons_exp(g, below_maximum(g, x, axis));

    return pons_div(g, e, node_failed(e) ? e : pons_sum(g, e, PONS_AXIS(axis)));
}

pons_node *pons_log_softmax(pons_graph *g, pons_node *x, int axis)
{
    pons_node *z = below_maximum(g, x, axis);

    if (node_failed(z))
        return g->failed;
    return pons_sub(g, z, pons_log(g, pons_sum(g, pons_exp(g, z), PONS_AXIS(axis))));
}

/* ---- gradients ------------------------------------------------------------------------------- */

void gradient_sum(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                  pons_node **gradient)
{
    gradient[0] = node_repeat(g, dx, x->input[0]->shape);
}

void gradient_maximum(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                      pons_node **gradient)
{
    gradient[0] = node_minmax_gradient(g, x->input[0], dx, x->attribute.axes, false);
}

void gradient_minimum(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                      pons_node **gradient)
{
    gradient[0] = node_minmax_gradient(g, x->input[0], dx, x->attribute.axes, true);
}
