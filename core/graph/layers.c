/*
 * layers.c - norms and dropout as compositions.
 *
 * A norm is (x - mean) k + shift with k = scale / sqrt(variance + eps) computed per channel, so
 * that forward reads x twice (moments, map) and backward needs the sums of dy and dy (x - mean)
 * alone (R14).
 */
#include "graph/build.h"

/* The axes between the first and the last. */
static unsigned inner_axes(const pons_node *x)
{
    return axes_all(x->shape.rank) & ~1u & ~PONS_AXIS(x->shape.rank - 1);
}

static pons_node *normalise(pons_graph *g, pons_node *x, pons_node *mean, pons_node *variance,
                            pons_node *scale, pons_node *shift, double eps)
{
    pons_node *root = pons_sqrt(g, pons_offset(g, variance, eps));
    pons_node *k = scale != NULL ? pons_div(g, scale, root) : pons_reciprocal(g, root);
    pons_node *y = pons_mul(g, pons_sub(g, x, mean), k);

    return shift != NULL ? pons_add(g, y, shift) : y;
}

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
    if (count > 1)
        return true;
    pons_graph_fail(g, PONS_CONFIG, "%s of %s has one element per statistic\n"
                    "hint: a larger patch or fewer levels", what,
                    shape_text(x->shape, text, sizeof text));
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
    return normalise(g, x, mean, variance, scale, shift, eps);
}

pons_node *pons_batch_norm(pons_graph *g, pons_node *x, pons_node *scale, pons_node *shift,
                           pons_node *running_mean, pons_node *running_variance, double rate,
                           double eps)
{
    pons_node *mean, *variance, *unbiased;
    double n;

    if (!g->training)
        return normalise(g, x, running_mean, running_variance, scale, shift, eps);
    if (node_failed(x) || !can_normalise(g, "batch norm", x, PONS_AXIS(x->shape.rank - 1)))
        return g->failed;
    pons_moments(g, x, inner_axes(x) | 1u, 0, &mean, &variance);
    if (node_failed(mean) || node_failed(running_mean) || node_failed(running_variance))
        return g->failed;
    n = (double)(shape_count(x->shape) / shape_count(mean->shape));
    unbiased = pons_scale(g, variance, n / (n - 1));
    pons_state_merge(g, running_mean, pons_reshape(g, mean, running_mean->shape), rate);
    pons_state_merge(g, running_variance, pons_reshape(g, unbiased, running_variance->shape), rate);
    return normalise(g, x, mean, variance, scale, shift, eps);
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
    return normalise(g, x, mean, variance, scale, shift, eps);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static pons_node *drop(pons_graph *g, pons_node *x, double p, const char *stream, pons_shape mask)
{
    pons_node *u = pons_random_uniform(g, stream, mask);

    return pons_select(g, pons_less(g, u, pons_real(g, p)), pons_real(g, 0),
                       pons_scale(g, x, p < 1 ? 1 / (1 - p) : 0));
}

static bool drops(pons_graph *g, pons_node *x, double p)
{
    if (!inputs_given(g, NODE_UNIFORM, 1, &x))
        return false;
    if (!(p >= 0 && p <= 1))
        node_refuse(g, NODE_UNIFORM, "dropout with probability %g, expected 0 to 1", p);
    return g->training && p > 0 && p <= 1;
}

pons_node *pons_dropout(pons_graph *g, pons_node *x, double p, const char *stream)
{
    return drops(g, x, p) ? drop(g, x, p, stream, x->shape) : x;
}

pons_node *pons_dropout_channels(pons_graph *g, pons_node *x, double p, const char *stream)
{
    pons_shape mask;

    if (!drops(g, x, p))
        return x;
    mask = x->shape;
    for (int i = 1; i < mask.rank - 1; i++)
        mask.extent[i] = 1;
    return drop(g, x, p, stream, mask);
}
