/*
 * onnx_fuse.c - compositions of nodes that ONNX has one operator for, as layers.c, map.c and
 * reduce.c make them: activations, means, softmax, instance and batch normalisation, biases.
 */
#include "onnx/onnx_internal.h"

#include <string.h>

static bool is_number(const pons_node *n, double value)
{
    return n->kind == NODE_CONSTANT && n->attribute.number == value;
}

/* The other operand of a commutative node with the operand 'one'; NULL: it has no such operand. */
static pons_node *other_operand(const pons_node *n, const pons_node *one)
{
    return n->input[0] == one ? n->input[1] : n->input[1] == one ? n->input[0] : NULL;
}

/* Set 'n' to an operator of x alone. */
static onnx_node *pointwise(onnx_graph *x, pons_node *n, const char *type, pons_node *of)
{
    onnx_layout layout = onnx_native(x, of);
    const char *in = onnx_operand(x, of, n->shape.rank, layout);
    onnx_node *node = onnx_add(x->model, type, 1, &in);

    onnx_set(x, n, layout, node->output[0]);
    return node;
}

/* ---- activations ----------------------------------------------------------------------------- */

/* select(x > 0, x, slope x) with a slope for all or for each channel. */
static bool leaky(onnx_graph *x, pons_node *n, pons_node *of, pons_node *slope)
{
    onnx_layout layout = onnx_native(x, of);

    if (slope->kind == NODE_CONSTANT) {
        onnx_set_float(x->model, pointwise(x, n, "LeakyRelu", of), "alpha",
                       slope->attribute.number);
        return true;
    }
    if (slope->leaf == NULL || slope->shape.rank != 1)
        return false;
    const char *in[] = { onnx_operand(x, of, n->shape.rank, layout),
                         onnx_operand(x, slope, n->shape.rank, layout) };
    onnx_set(x, n, layout, onnx_apply2(x->model, "PRelu", in[0], in[1]));
    return true;
}

static bool activation(onnx_graph *x, pons_node *n)
{
    pons_node *condition = n->input[0], *of = n->input[1], *below = n->input[2];

    if (condition->kind != PONS_MAP_GREATER || condition->input[0] != of
        || !is_number(condition->input[1], 0) || of->type != PONS_F32
        || of->shape.rank != n->shape.rank)
        return false;
    if (is_number(below, 0)) {
        pointwise(x, n, "Relu", of);
        return true;
    }
    if (below->kind == PONS_MAP_MUL && other_operand(below, of) != NULL)
        return leaky(x, n, of, other_operand(below, of));
    if (below->kind == PONS_MAP_EXPM1 && below->input[0]->kind == PONS_MAP_MIN
        && other_operand(below->input[0], of) != NULL
        && is_number(other_operand(below->input[0], of), 0)) {
        pointwise(x, n, "Elu", of);
        return true;
    }
    return false;
}

/* ---- quotients ------------------------------------------------------------------------------- */

static double read_mean_error(const pons_node *n, int index)
{
    const pons_node *of = n->input[0]->input[0];
    double count = 1;

    for (int i = 0; i < of->shape.rank; i++)
        count *= (double)of->shape.extent[i] / (double)n->input[0]->shape.extent[i];
    return n->input[1]->attribute.number - count;
}

/* sum(x) / n */
static bool mean(onnx_graph *x, pons_node *n)
{
    pons_node *sum = n->input[0];
    onnx_quantity error;
    onnx_layout layout;
    int64_t axes[PONS_RANK_MAX];

    if (sum->kind != NODE_SUM || n->input[1]->kind != NODE_CONSTANT)
        return false;
    error = onnx_read(x, n, read_mean_error, 0);
    if (!onnx_is_constant(&error) || error.at[VARIANT_BASE] != 0)
        return false;
    layout = onnx_native(x, sum->input[0]);
    const char *in = onnx_operand(x, sum->input[0], n->shape.rank, layout);
    int count = onnx_axes_of(x, sum, layout, sum->attribute.axes, axes);
    onnx_set(x, n, layout, onnx_reduced(x, "ReduceMean", in, count, axes));
    return true;
}

/* exp(x - max x) / sum exp(x - max x) */
static bool softmax(onnx_graph *x, pons_node *n)
{
    pons_node *e = n->input[0], *sum = n->input[1], *difference, *maximum;
    int axis = 0;

    if (e->kind != PONS_MAP_EXP || sum->kind != NODE_SUM || sum->input[0] != e
        || e->input[0]->kind != PONS_MAP_SUB)
        return false;
    difference = e->input[0];
    maximum = difference->input[1];
    if (maximum->kind == PONS_MAP_STOP_GRADIENT)
        maximum = maximum->input[0];
    if (maximum->kind != NODE_MAXIMUM || maximum->input[0] != difference->input[0]
        || maximum->attribute.axes != sum->attribute.axes)
        return false;
    while (axis < n->shape.rank && sum->attribute.axes != PONS_AXIS(axis))
        axis++;
    if (axis == n->shape.rank || onnx_axis(x, n, onnx_native(x, difference->input[0]), axis) < 0)
        return false;
    onnx_layout layout = onnx_native(x, difference->input[0]);
    onnx_set_int(x->model, pointwise(x, n, "Softmax", difference->input[0]), "axis",
                 onnx_axis(x, n, layout, axis));
    return true;
}

/* ---- normalisation --------------------------------------------------------------------------- */

typedef struct normalisation {
    pons_node *of, *mean, *variance, *scale, *shift; /* scale, shift: leaves, or NULL             */
    double eps;
} normalisation;

/* scale / sqrt(variance + eps) or 1 / sqrt(variance + eps) */
static bool match_factor(pons_node *k, normalisation *out)
{
    pons_node *root, *shifted;

    if (k->kind != PONS_MAP_DIV)
        return false;
    root = k->input[1];
    if (root->kind != PONS_MAP_SQRT || root->input[0]->kind != PONS_MAP_ADD)
        return false;
    shifted = root->input[0];
    if (shifted->input[1]->kind != NODE_CONSTANT)
        return false;
    out->variance = shifted->input[0];
    out->eps = shifted->input[1]->attribute.number;
    out->scale = is_number(k->input[0], 1) ? NULL : k->input[0];
    return out->scale == NULL || (out->scale->leaf != NULL && out->scale->shape.rank == 1);
}

/* (x - mean) k + shift, whose shift may be missing. */
static bool match_normalisation(pons_node *n, normalisation *out)
{
    pons_node *product = n;

    if (n->kind == PONS_MAP_ADD) {
        out->shift = n->input[1];
        product = n->input[0];
        if (out->shift->leaf == NULL || out->shift->shape.rank != 1)
            return false;
    }
    if (product->kind != PONS_MAP_MUL || product->input[0]->kind != PONS_MAP_SUB
        || !match_factor(product->input[1], out))
        return false;
    out->of = product->input[0]->input[0];
    out->mean = product->input[0]->input[1];
    return out->of->shape.rank == 5 && n->shape.rank == 5;
}

static bool is_instance(const normalisation *z)
{
    return z->mean->kind == NODE_MOMENTS && z->variance->kind == NODE_SECOND
           && z->variance->input[0] == z->mean && z->mean->input[0] == z->of
           && z->mean->attribute.moments.groups == 0
           && z->mean->attribute.moments.axes == PONS_SPATIAL;
}

static bool is_group(const normalisation *z)
{
    return z->mean->kind == NODE_MOMENTS && z->variance->kind == NODE_SECOND
           && z->variance->input[0] == z->mean && z->mean->input[0] == z->of
           && z->mean->attribute.moments.groups > 0
           && z->mean->attribute.moments.axes == PONS_SPATIAL;
}

static bool is_batch(const normalisation *z)
{
    return z->mean->kind == NODE_STATE && z->variance->kind == NODE_STATE
           && z->mean->shape.rank == 1 && z->variance->shape.rank == 1;
}

/* A leaf, or a vector of 'value' for each channel. */
static const char *vector_of(onnx_graph *x, pons_node *leaf, int64_t count, float value)
{
    onnx_model *m = x->model;
    const char *name = arena_format(m->memory, "constant_%d", m->made++);
    float *all;

    if (leaf != NULL)
        return onnx_value_of(x, leaf, LAYOUT_LAST);
    all = arena_alloc(m->memory, (size_t)count * sizeof *all);
    for (int64_t i = 0; i < count; i++)
        all[i] = value;
    onnx_floats(m, name, 1, &count, all);
    return name;
}

/* Groups as the channels of an instance normalisation: opset 17 has no other operator. */
static void normalise_groups(onnx_graph *x, pons_node *n, const normalisation *z)
{
    onnx_model *m = x->model;
    int64_t groups = z->mean->attribute.moments.groups;
    const int64_t apart[] = { 0, groups, -1 };
    const char *of = onnx_operand(x, z->of, 5, LAYOUT_FIRST), *shape = onnx_apply1(m, "Shape", of);
    const char *in[3] = { onnx_apply2(m, "Reshape", of, onnx_int64s(m, 3, apart)),
                          vector_of(x, NULL, groups, 1), vector_of(x, NULL, groups, 0) };
    onnx_node *node = onnx_add(m, "InstanceNormalization", 3, in);
    const char *name = onnx_apply2(m, "Reshape", node->output[0], shape);

    onnx_set_float(m, node, "epsilon", z->eps);
    if (z->scale != NULL)
        name = onnx_apply2(m, "Mul", name, onnx_operand(x, z->scale, 5, LAYOUT_FIRST));
    if (z->shift != NULL)
        name = onnx_apply2(m, "Add", name, onnx_operand(x, z->shift, 5, LAYOUT_FIRST));
    onnx_set(x, n, LAYOUT_FIRST, name);
}

static bool normalise(onnx_graph *x, pons_node *n)
{
    normalisation z = { .of = NULL };
    bool batch;

    if (!match_normalisation(n, &z))
        return false;
    if (is_group(&z)) {
        normalise_groups(x, n, &z);
        return true;
    }
    if (!is_instance(&z) && !is_batch(&z))
        return false;
    batch = is_batch(&z);
    int64_t channels = n->shape.extent[4];
    const char *in[5] = { onnx_operand(x, z.of, 5, LAYOUT_FIRST),
                          vector_of(x, z.scale, channels, 1),
                          vector_of(x, z.shift, channels, 0), NULL, NULL };
    if (batch) {
        in[3] = onnx_value_of(x, z.mean, LAYOUT_LAST);
        in[4] = onnx_value_of(x, z.variance, LAYOUT_LAST);
    }
    onnx_node *node = onnx_add(x->model, batch ? "BatchNormalization" : "InstanceNormalization",
                               batch ? 5 : 3, in);
    onnx_set_float(x->model, node, "epsilon", z.eps);
    onnx_set(x, n, LAYOUT_FIRST, node->output[0]);
    return true;
}

/* A convolution that nothing else reads yet, and the bias of its channels. */
static bool biased_convolution(onnx_graph *x, pons_node *n)
{
    pons_node *of = n->input[0], *bias = n->input[1];

    if ((of->kind != NODE_CONVOLUTION && of->kind != NODE_CONVOLUTION_INPUT_GRADIENT)
        || x->value[of->number].made || bias->leaf == NULL || bias->shape.rank != 1
        || bias->shape.extent[0] != of->shape.extent[4])
        return false;
    onnx_set(x, n, LAYOUT_FIRST, onnx_convolution(x, of, bias));
    return true;
}

bool onnx_fuse_rule(onnx_graph *x, pons_node *n)
{
    switch (n->kind) {
    case PONS_MAP_SELECT: return activation(x, n);
    case PONS_MAP_DIV: return mean(x, n) || softmax(x, n);
    case PONS_MAP_ADD: return biased_convolution(x, n) || normalise(x, n);
    case PONS_MAP_MUL: return normalise(x, n);
    default: return false;
    }
}
