/*
 * layers.c - norms and dropout as compositions of nodes.
 *
 * A norm is (x - mean) k + shift, where k = scale / sqrt(variance + eps) is computed per channel.
 * So the forward pass reads x twice (moments, map), and the backward pass needs only the sums of dy
 * and dy (x - mean) (R14). Batch statistics may span all replicas of a step (R10).
 */
#include "graph/ir/ir_internal.h"

/* The axes between the first and the last one. */
static unsigned inner_axes(const pons_node *x)
{
    return axes_all(x->shape.rank) & ~1u & ~PONS_AXIS(x->shape.rank - 1);
}

static pons_node *normalise_by(pons_graph *g, pons_node *x, pons_node *mean, pons_node *variance,
                               pons_node *scale, pons_node *shift, double eps)
{
    pons_node *root = pons_sqrt(g, pons_add_scalar(g, variance, eps));
    pons_node *k = scale != NULL ? pons_div(g, scale, root) : pons_reciprocal(g, root);
    pons_node *y = pons_mul(g, pons_sub(g, x, mean), k);

    return shift != NULL ? pons_add(g, y, shift) : y;
}

/* ---- over replicas --------------------------------------------------------------------------- */

static pons_node *replica_count(pons_graph *g)
{
    return pons_all_reduce(g, pons_scalar(g, 1));
}

/* The mean of 'x' over replicas, which all have equally many elements. */
static pons_node *mean_over_replicas(pons_graph *g, pons_node *x)
{
    return pons_div(g, pons_all_reduce(g, x), replica_count(g));
}

/*
 * The joined mean is the mean of means. The joined variance is the mean of each variance plus its
 * squared distance to the joined mean (Chan, Golub and LeVeque 1983). The distances add up to 0, so
 * the derivative with respect to the joined mean is 0 as well. It is not followed, so neither of
 * the two sums of the backward pass waits for the other.
 */
static void join_moments(pons_graph *g, pons_node **mean, pons_node **variance)
{
    pons_node *all = mean_over_replicas(g, *mean);
    pons_node *distance = pons_sub(g, *mean, pons_stop_gradient(g, all));

    *variance = mean_over_replicas(g, pons_add(g, *variance, pons_square(g, distance)));
    *mean = all;
}

/* ---- norms ----------------------------------------------------------------------------------- */

static bool can_normalise(pons_graph *g, const char *what, pons_node *x, unsigned keep)
{
    char text[160];
    int64_t count = 1;

    if (!inputs_given(g, NODE_MOMENTS, 1, &x))
        return false;
    if (x->shape.rank < 2) {
        node_refuse(g, NODE_MOMENTS, "%s of %s, expected at least two axes", what,
                    shape_text(x->shape, text, sizeof text));
        return false;
    }
    for (int i = 0; i < x->shape.rank; i++)
        if ((keep & PONS_AXIS(i)) == 0)
            count *= x->shape.extent[i];
    if (count > 1 || ((keep & 1u) == 0 && g->join_norms))
        return true;
    pons_graph_fail(g, PONS_CONFIG, "%s of %s has one element per statistic\n"
                    "hint: a larger patch%s or fewer levels", what,
                    shape_text(x->shape, text, sizeof text),
                    (keep & 1u) == 0 ? ", a larger [train] batch" : "");
    return false;
}

pons_node *pons_instance_norm(pons_graph *g, pons_node *x, pons_node *scale, pons_node *shift,
                              double eps)
{
    pons_node *mean, *variance;

    if (node_failed(x) ||
        !can_normalise(g, "instance norm", x, 1u | PONS_AXIS(x->shape.rank - 1)))
        return g->failed;
    pons_moments(g, x, inner_axes(x), 0, &mean, &variance);
    return normalise_by(g, x, mean, variance, scale, shift, eps);
}

/* variance n / (n - 1), where n counts the elements of all replicas. */
static pons_node *unbiased_variance(pons_graph *g, pons_node *variance, double n)
{
    pons_node *count;

    if (!g->join_norms)
        return pons_scale(g, variance, n / (n - 1));
    count = pons_scale(g, replica_count(g), n);
    return pons_mul(g, variance, pons_div(g, count, pons_add_scalar(g, count, -1)));
}

pons_node *pons_batch_norm(pons_graph *g, pons_node *x, pons_node *scale, pons_node *shift,
                           pons_node *running_mean, pons_node *running_variance, double rate,
                           double eps)
{
    pons_node *mean, *variance, *spread;
    double n;

    if (!g->training)
        return normalise_by(g, x, running_mean, running_variance, scale, shift, eps);
    if (node_failed(x) || !can_normalise(g, "batch norm", x, PONS_AXIS(x->shape.rank - 1)))
        return g->failed;
    pons_moments(g, x, inner_axes(x) | 1u, 0, &mean, &variance);
    if (node_failed(mean) || node_failed(running_mean) || node_failed(running_variance))
        return g->failed;
    n = (double)(shape_count(x->shape) / shape_count(mean->shape));
    if (g->join_norms)
        join_moments(g, &mean, &variance);
    spread = unbiased_variance(g, variance, n);
    pons_state_merge(g, running_mean, pons_reshape(g, mean, running_mean->shape), rate);
    pons_state_merge(g, running_variance, pons_reshape(g, spread, running_variance->shape), rate);
    return normalise_by(g, x, mean, variance, scale, shift, eps);
}

pons_node *pons_group_norm(pons_graph *g, pons_node *x, int groups, pons_node *scale,
                           pons_node *shift, double eps)
{
    pons_node *mean, *variance;

    if (node_failed(x) || !can_normalise(g, "group norm", x, 1u))
        return g->failed;
    if (groups < 1)
        return node_refuse(g, NODE_MOMENTS, "group norm with %d groups", groups);
    pons_moments(g, x, inner_axes(x), groups, &mean, &variance);
    return normalise_by(g, x, mean, variance, scale, shift, eps);
}

pons_node *pons_channel_norm(pons_graph *g, pons_node *x, pons_node *scale, pons_node *shift,
                             double eps)
{
    pons_node *mean, *variance;
    unsigned last;

    if (node_failed(x) || x->shape.rank < 1)
        return g->failed;
    last = PONS_AXIS(x->shape.rank - 1);
    if (!can_normalise(g, "layer norm", x, axes_all(x->shape.rank) & ~last))
        return g->failed;
    pons_moments(g, x, last, 0, &mean, &variance);
    return normalise_by(g, x, mean, variance, scale, shift, eps);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static pons_node *drop_elements(pons_graph *g, pons_node *x, double p, const char *stream,
                                pons_shape mask)
{
    pons_node *u = pons_random_uniform(g, stream, mask);

    return pons_select(g, pons_less(g, u, pons_scalar(g, p)), pons_scalar(g, 0),
                       pons_scale(g, x, p < 1 ? 1 / (1 - p) : 0));
}

static bool dropout_applies(pons_graph *g, pons_node *x, double p)
{
    if (!inputs_given(g, NODE_UNIFORM, 1, &x))
        return false;
    if (!(p >= 0 && p <= 1))
        node_refuse(g, NODE_UNIFORM, "dropout with probability %g, expected 0 to 1", p);
    return (g->training || g->drops) && p > 0 && p <= 1;
}

pons_node *pons_dropout(pons_graph *g, pons_node *x, double p, const char *stream)
{
    return dropout_applies(g, x, p) ? drop_elements(g, x, p, stream, x->shape) : x;
}

pons_node *pons_dropout_channels(pons_graph *g, pons_node *x, double p, const char *stream)
{
    pons_shape mask;

    if (!dropout_applies(g, x, p))
        return x;
    mask = x->shape;
    for (int i = 1; i < mask.rank - 1; i++)
        mask.extent[i] = 1;
    return drop_elements(g, x, p, stream, mask);
}
