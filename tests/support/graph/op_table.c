/*
 * op_table.c - the cases, see op_table.h. Pointwise cases are generated from PONS_MAP_OPERATIONS.
 */
#include "support/graph/op_table.h"

#include "graph/ir/build.h"
#include "graph/ir/gradient.h"
#include "graph/ir/leaf.h"
#include "graph/ir/patch.h"
#include "graph/ir/shape.h"
#include "plugin/plugin_load.h"

#include <math.h>
#include <pons/op.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Extents of timed tensors. */
enum { LARGE = 32, LARGE_CHANNELS = 16, LARGE_BYTES = 65536 };

/* ---- random shapes and leaves ---------------------------------------------------------------- */

/* A random integer from 0 to count - 1, by splitmix64. */
static int64_t draw(uint64_t *random, int64_t count)
{
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((z ^ z >> 31) % (uint64_t)count);
}

static int64_t size(op_graph *o)
{
    static const int64_t sizes[] = { 1, 2, 3, 3, 5 };

    if (o->large)
        return LARGE;
    return sizes[draw(&o->random, 5)];
}

/* Channels of a convolution's input or output in one group. */
static int64_t features(op_graph *o)
{
    return o->large ? LARGE_CHANNELS : 1 + draw(&o->random, 3);
}

static pons_shape image_shape(op_graph *o)
{
    if (o->large)
        return (pons_shape){ 5, { 2, LARGE, LARGE, LARGE, LARGE_CHANNELS } };
    return (pons_shape){ 5, { 1 + draw(&o->random, 2), size(o), size(o), size(o), size(o) } };
}

static op_leaf *leaf_add(op_graph *o, pons_node *node, double low, double high)
{
    op_leaf *l = &o->leaf[o->leaf_count++];

    *l = (op_leaf){ .node = node, .low = low, .high = high, .wanted = true };
    return l;
}

static pons_node *input(op_graph *o, pons_shape s, double low, double high)
{
    return leaf_add(o, node_input(o->g, pons_name(o->g, "leaf%d", o->leaf_count), PONS_F32, s), low,
                    high)->node;
}

static pons_node *image(op_graph *o)
{
    return input(o, image_shape(o), -1, 1);
}

/* Add a leaf without a gradient. */
static pons_node *constant_leaf(op_graph *o, pons_node *node, double low, double high, bool whole)
{
    op_leaf *l = leaf_add(o, node, low, high);

    l->wanted = false;
    l->whole = whole;
    return node;
}

static int64_t last_extent(const pons_node *x)
{
    return x->shape.extent[x->shape.rank - 1];
}

static pons_shape vector(int64_t n)
{
    return (pons_shape){ 1, { n } };
}

/* ---- pointwise ------------------------------------------------------------------------------- */

/* The range in which an operation is defined, and smooth but for kinks. */
static const struct { double low, high; } domains[PONS_MAP_OPERATION_COUNT] = {
    [PONS_MAP_DIV] = { 0.5, 2 }, [PONS_MAP_POW] = { 0.5, 2 }, [PONS_MAP_SQRT] = { 0.3, 2 },
    [PONS_MAP_LOG] = { 0.3, 2 }, [PONS_MAP_LOG1P] = { -0.6, 1 }, [PONS_MAP_FLOOR] = { -3, 3 },
    [PONS_MAP_ROUND] = { -3.4, 3.4 },
};

/* Shape of operand 'i' for the full shape 's': equal, per channel, scalar, per case, or mixed. */
static pons_shape operand_shape(pons_shape s, int variant, int i)
{
    pons_shape per_case = { 5, { s.extent[0], 1, 1, 1, 1 } };
    pons_shape rows = { 5, { 1, s.extent[1], 1, s.extent[3], 1 } };
    pons_shape columns = { 3, { s.extent[2], 1, s.extent[4] } };

    switch (variant) {
    case 1: return i == 0 ? s : vector(s.extent[4]);
    case 2: return i == 1 ? s : (pons_shape){ .rank = 0 };
    case 3: return i == 0 ? per_case : i == 1 ? s : vector(1);
    case 4: return i == 0 ? rows : columns;
    default: return s;
    }
}

static pons_node *pointwise(op_graph *o, pons_map_operation op, int arity)
{
    double low = domains[op].low, high = domains[op].high;
    pons_shape s = image_shape(o);
    pons_node *in[3];
    node_attribute none = { .number = 0 };
    pons_shape shape = { .rank = 0 };

    if (low == 0 && high == 0)
        low = -1, high = 1;
    for (int i = 0; i < arity; i++) {
        in[i] = input(o, arity == 1 ? s : operand_shape(s, o->variant, i), low, high);
        shape_broadcast(shape, in[i]->shape, &shape);
    }
    return node_new(o->g, op, PONS_F32, shape, arity, in, &none);
}

#define POINTWISE(NAME, name, arity)                                                              \
    static pons_node *map_##name(op_graph *o)                                                     \
    {                                                                                             \
        return pointwise(o, PONS_MAP_##NAME, arity);                                              \
    }
PONS_MAP_OPERATIONS(POINTWISE)

static pons_node *build_cast(op_graph *o)
{
    static const pons_type types[] = { PONS_U8, PONS_I32 };
    pons_node *x = input(o, image_shape(o), o->variant == 0 ? 0 : -5, 5);

    return pons_cast(o->g, pons_cast(o->g, x, types[o->variant]), PONS_F32);
}

static pons_node *build_cast_half(op_graph *o)
{
    return pons_cast(o->g, pons_cast(o->g, image(o), PONS_BF16 + (pons_type)o->variant), PONS_F32);
}

/* Powers with the constant exponents that builders fold. */
static pons_node *build_power(op_graph *o)
{
    static const double exponents[] = { 0, 0.5, 1, 2, 3, 1.7, -1 };
    pons_node *x = input(o, image_shape(o), 0.4, 2);

    return pons_add(o->g, x, pons_pow(o->g, x, pons_scalar(o->g, exponents[o->variant])));
}

static pons_node *build_activation(op_graph *o)
{
    pons_node *x = image(o);

    switch (o->variant) {
    case 0: return pons_sigmoid(o->g, pons_scale(o->g, x, 5));
    case 1: return pons_log_sigmoid(o->g, pons_scale(o->g, x, 5));
    case 2: return pons_relu(o->g, x);
    case 3: return pons_leaky_relu(o->g, x, 0.1);
    case 4: return pons_prelu(o->g, x, input(o, vector(1), 0, 1));
    case 5: return pons_prelu(o->g, x, input(o, vector(last_extent(x)), 0, 1));
    case 6: return pons_elu(o->g, pons_scale(o->g, x, 3));
    case 7: return pons_lerp(o->g, x, pons_square(o->g, x), 0.3);
    case 8: return pons_reciprocal(o->g, pons_add_scalar(o->g, x, 3));
    case 9: return pons_gelu(o->g, pons_scale(o->g, x, 3));
    default: return pons_scale(o->g, pons_neg(o->g, pons_neg(o->g, x)), 2);
    }
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static const pons_init zero = { PONS_INIT_CONSTANT, 0 };

static pons_node *build_parameter(op_graph *o)
{
    pons_shape s = image_shape(o);
    pons_node *p = pons_parameter_leaf(o->g, "p", PONS_ROLE_WEIGHT, s, zero);

    return pons_square(o->g, leaf_add(o, p, -1, 1)->node);
}

static pons_node *times(op_graph *o, pons_node *x, pons_node *leaf)
{
    return pons_mul(o->g, x, constant_leaf(o, leaf, -1, 1, false));
}

static pons_node *build_state(op_graph *o)
{
    pons_node *x = image(o);

    return times(o, x, pons_state_leaf(o->g, "s", vector(last_extent(x)), 0));
}

static pons_node *build_scalar(op_graph *o)
{
    return times(o, image(o), node_scalar(o->g, "lr"));
}

/* Graph with a parameter and a slot. */
static pons_node *build_slot(op_graph *o)
{
    pons_node *x = image(o);
    pons_node *p = pons_parameter_leaf(o->g, "p", PONS_ROLE_BIAS, vector(last_extent(x)), zero);

    return times(o, x,
                 node_slot(o->g, p, 0, o->variant == 0 ? PONS_SLOT_ELEMENT : PONS_SLOT_TENSOR));
}

static pons_node *build_folded(op_graph *o)
{
    pons_node *x = image(o);
    pons_node *p = pons_parameter_leaf(o->g, "p", PONS_ROLE_BIAS, vector(last_extent(x)), zero);

    return times(o, x, node_accumulated_gradient(o->g, p));
}

static pons_node *build_constant(op_graph *o)
{
    return pons_add_scalar(o->g, pons_scale(o->g, image(o), 0.37), -1.25);
}

static pons_node *build_iota(op_graph *o)
{
    pons_node *x = image(o);
    int axis = o->variant;

    return pons_mul(o->g, x, pons_iota(o->g, 5, axis, x->shape.extent[axis]));
}

static pons_node *build_uniform(op_graph *o)
{
    pons_node *x = image(o);

    return pons_mul(o->g, x, pons_random_uniform(o->g, "u", x->shape));
}

static pons_node *build_normal(op_graph *o)
{
    pons_node *x = image(o);

    return pons_mul(o->g, x, pons_random_normal(o->g, "n", x->shape));
}

static pons_node *build_dropout(op_graph *o)
{
    pons_node *x = image(o);

    return o->variant == 0 ? pons_dropout(o->g, x, 0.4, "d")
                           : pons_dropout_channels(o->g, x, 0.4, "d");
}

/* ---- reductions ------------------------------------------------------------------------------ */

static unsigned some_axes(op_graph *o)
{
    static const unsigned sets[] = {
        PONS_SPATIAL, PONS_BATCH | PONS_SPATIAL, PONS_CHANNEL, PONS_BATCH | PONS_CHANNEL,
        PONS_BATCH | PONS_SPATIAL | PONS_CHANNEL, PONS_AXIS(2), PONS_AXIS(1) | PONS_AXIS(3)
    };

    return sets[o->variant % 7];
}

/* Build the kind itself, even where there is nothing to reduce. */
static pons_node *reduction(op_graph *o, int kind)
{
    pons_node *x = image(o);
    node_attribute a = { .axes = some_axes(o) };
    pons_shape s = x->shape;

    for (int i = 0; i < s.rank; i++)
        if ((a.axes & PONS_AXIS(i)) != 0)
            s.extent[i] = 1;
    return node_new(o->g, kind, PONS_F32, s, 1, &x, &a);
}

static pons_node *build_sum(op_graph *o)
{
    return reduction(o, NODE_SUM);
}

static pons_node *build_maximum(op_graph *o)
{
    return reduction(o, NODE_MAXIMUM);
}

static pons_node *build_minimum(op_graph *o)
{
    return reduction(o, NODE_MINIMUM);
}

static pons_node *build_mean(op_graph *o)
{
    pons_node *x = pons_square(o->g, image(o));

    return pons_mul(o->g, x, o->variant == 0 ? pons_mean(o->g, x, PONS_SPATIAL)
                                             : pons_mean_all(o->g, x));
}

static pons_node *build_arg_max(op_graph *o)
{
    return pons_cast(o->g, pons_arg_max(o->g, image(o), o->variant), PONS_F32);
}

static pons_node *build_moments(op_graph *o)
{
    pons_node *x = image(o), *average, *variance;

    pons_moments(o->g, x, some_axes(o), 0, &average, &variance);
    return pons_add(o->g, pons_scale(o->g, average, 0.7), pons_scale(o->g, variance, 1.3));
}

static pons_node *build_moments_in_groups(op_graph *o)
{
    static const int groups[] = { 1, 2, 3, 6 };
    pons_shape s = image_shape(o);
    pons_node *average, *variance;

    s.extent[4] = 6;
    s.extent[3] = o->large ? LARGE : 3;
    pons_moments(o->g, input(o, s, -1, 1),
                 o->variant < 4 ? PONS_SPATIAL : PONS_SPATIAL | PONS_BATCH, groups[o->variant % 4],
                 &average, &variance);
    return pons_add(o->g, pons_scale(o->g, average, 0.7), pons_scale(o->g, variance, 1.3));
}

static pons_node *build_norm(op_graph *o)
{
    pons_shape s = image_shape(o);
    pons_node *x, *scale, *shift, *m, *v;

    s.extent[3] = 5;
    s.extent[4] *= 2;
    x = input(o, s, -1, 1);
    scale = input(o, vector(s.extent[4]), 0.5, 2);
    shift = input(o, vector(s.extent[4]), -1, 1);
    m = constant_leaf(o, pons_state_leaf(o->g, "m", vector(s.extent[4]), 0), -1, 1, false);
    v = constant_leaf(o, pons_state_leaf(o->g, "v", vector(s.extent[4]), 1), 0.5, 1, false);
    o->g->training = o->variant != 3;
    switch (o->variant) {
    case 0: return pons_instance_norm(o->g, x, scale, shift, 1e-2);
    case 1: return pons_group_norm(o->g, x, 2, scale, shift, 1e-2);
    case 4: return pons_instance_norm(o->g, x, NULL, NULL, 1e-2);
    case 5: return pons_channel_norm(o->g, x, scale, shift, 1e-2);
    default: return pons_batch_norm(o->g, x, scale, shift, m, v, 0.1, 1e-2);
    }
}

static pons_node *build_softmax(op_graph *o)
{
    pons_node *x = pons_scale(o->g, image(o), 3);

    return o->variant % 2 == 0 ? pons_softmax(o->g, x, o->variant < 2 ? 4 : 2)
                               : pons_log_softmax(o->g, x, o->variant < 2 ? 4 : 2);
}

/* ---- convolution, matrix product ------------------------------------------------------------- */

static pons_convolution some_convolution(op_graph *o, int64_t kernel[3])
{
    static const int64_t kernels[] = { 1, 2, 3, 3 };
    pons_convolution c = PONS_CONVOLUTION_INIT;

    for (int i = 0; i < 3 && o->large; i++) {
        kernel[i] = 3;
        c.pad_low[i] = c.pad_high[i] = 1;
    }
    for (int i = 0; i < 3 && !o->large; i++) {
        kernel[i] = kernels[draw(&o->random, 4)];
        c.stride[i] = 1 + (int)draw(&o->random, 3);
        c.dilation[i] = 1 + (int)draw(&o->random, 2);
        c.pad_low[i] = (int)draw(&o->random, 3);
        c.pad_high[i] = (int)draw(&o->random, 3);
    }
    c.groups = 1 + o->variant % 2;
    return c;
}

/* An image that is large enough for the kernel, with channels for the groups. */
static pons_shape convolution_image(op_graph *o, const pons_convolution *c, const int64_t *kernel)
{
    pons_shape s = image_shape(o);

    for (int i = 0; i < 3; i++) {
        int64_t span = c->dilation[i] * (kernel[i] - 1) + 1 - c->pad_low[i] - c->pad_high[i];

        if (s.extent[1 + i] < span)
            s.extent[1 + i] = span;
    }
    s.extent[4] = c->groups * features(o);
    return s;
}

static pons_node *build_convolution(op_graph *o)
{
    int64_t kernel[3];
    pons_convolution c = some_convolution(o, kernel);
    pons_shape s = convolution_image(o, &c, kernel);
    pons_shape w = { 5, { c.groups * features(o), kernel[0], kernel[1], kernel[2],
                          s.extent[4] / c.groups } };

    return pons_convolve(o->g, input(o, s, -1, 1), input(o, w, -1, 1), &c);
}

static pons_node *build_convolution_transposed(op_graph *o)
{
    int64_t kernel[3];
    pons_convolution c = some_convolution(o, kernel);
    pons_shape y = image_shape(o);
    pons_shape w = { 5, { 0, kernel[0], kernel[1], kernel[2], features(o) } };
    int output_padding[3];

    for (int i = 0; i < 3; i++) {
        int64_t reach = c.dilation[i] * (kernel[i] - 1);

        output_padding[i] = (int)draw(&o->random, c.stride[i]);
        if (c.pad_low[i] + c.pad_high[i] > reach)
            c.pad_low[i] = c.pad_high[i] = 0;
    }
    y.extent[4] = w.extent[0] = c.groups * features(o);
    return pons_convolve_transposed(o->g, input(o, y, -1, 1), input(o, w, -1, 1), &c,
                                    output_padding);
}

static pons_node *build_convolution_weight(op_graph *o)
{
    int64_t kernel[3];
    pons_convolution c = some_convolution(o, kernel);
    pons_shape x = convolution_image(o, &c, kernel), y = x;

    for (int i = 0; i < 3; i++)
        y.extent[1 + i] = (x.extent[1 + i] + c.pad_low[i] + c.pad_high[i] -
                           c.dilation[i] * (kernel[i] - 1) - 1) / c.stride[i] + 1;
    y.extent[4] = c.groups * features(o);
    return pons_convolve_weight_gradient(o->g, input(o, x, -1, 1), input(o, y, -1, 1), &c, kernel);
}

static pons_node *build_matmul(op_graph *o)
{
    bool ta = o->variant & 1, tb = o->variant >> 1 & 1;
    int64_t m = size(o), n = size(o), k = size(o);
    pons_shape a = { 3, { size(o), ta ? k : m, ta ? m : k } };
    pons_shape b = { 3, { a.extent[0], tb ? n : k, tb ? k : n } };

    return pons_matmul(o->g, input(o, a, -1, 1), input(o, b, -1, 1), ta, tb);
}

/* ---- pool, resize ---------------------------------------------------------------------------- */

static pons_node *build_pool(op_graph *o)
{
    pons_pool p = { .mode = o->variant % 2 == 0 ? PONS_POOL_MAX : PONS_POOL_MEAN,
                    .ceil = o->variant >= 2 };
    pons_shape s = image_shape(o);

    for (int i = 0; i < 3; i++) {
        p.kernel[i] = o->large ? 2 : 1 + (int)draw(&o->random, 3);
        p.stride[i] = o->large ? 2 : 1 + (int)draw(&o->random, 2);
        p.pad_low[i] = o->large ? 0 : (int)draw(&o->random, p.kernel[i] / 2 + 1);
        p.pad_high[i] = p.pad_low[i];
        if (s.extent[1 + i] < p.kernel[i])
            s.extent[1 + i] = p.kernel[i] - (p.ceil && p.stride[i] == 2 && p.kernel[i] > 1);
    }
    return pons_pooling(o->g, input(o, s, -1, 1), &p);
}

static pons_node *build_resize(op_graph *o)
{
    pons_node *x = image(o);
    int64_t extent[3];

    for (int i = 0; i < 3; i++)
        extent[i] = o->large ? LARGE * 3 / 2 : 1 + draw(&o->random, 7);
    if (extent[0] == x->shape.extent[1])
        extent[0]++;
    return pons_resize(o->g, x, (pons_resize_mode)(1 + o->variant), extent);
}

/* ---- data movement --------------------------------------------------------------------------- */

static pons_node *build_reshape(op_graph *o)
{
    pons_node *x = image(o);
    const int64_t *n = x->shape.extent;

    return pons_reshape(o->g, x, (pons_shape){ 2, { n[0] * n[1], n[2] * n[3] * n[4] } });
}

static pons_node *build_transpose(op_graph *o)
{
    static const int orders[][5] = { { 0, 4, 1, 2, 3 }, { 4, 3, 2, 1, 0 }, { 1, 0, 2, 4, 3 } };

    return pons_transpose(o->g, image(o), orders[o->variant]);
}

static pons_node *build_broadcast(op_graph *o)
{
    pons_shape s = image_shape(o);
    pons_node *x;

    s.extent[0] = 3;
    x = input(o, operand_shape(s, 1 + o->variant, o->variant == 1 ? 0 : 1), -1, 1);
    return o->variant == 2 ? pons_broadcast(o->g, x, (pons_shape){ 6, { 2, s.extent[0], s.extent[1],
                                                     s.extent[2], s.extent[3], s.extent[4] } })
                           : pons_broadcast(o->g, x, s);
}

static pons_node *build_flip(op_graph *o)
{
    return pons_flip(o->g, image(o), some_axes(o));
}

static pons_node *build_crop(op_graph *o)
{
    pons_shape s = image_shape(o);
    int64_t start[5], extent[5], step[5];

    if (o->large)
        return pons_crop(o->g, image(o), (const int64_t[]){ 0, 1, 2, 3, 0 },
                         (const int64_t[]){ 2, LARGE - 2, LARGE - 4, LARGE - 6, LARGE_CHANNELS },
                         NULL);
    s.extent[2] = 7;
    for (int i = 0; i < 5; i++) {
        start[i] = draw(&o->random, s.extent[i]);
        step[i] = o->variant == 0 ? 1 : 1 + draw(&o->random, 3);
        extent[i] = 1 + draw(&o->random, (s.extent[i] - 1 - start[i]) / step[i] + 1);
    }
    start[2] += start[2] == 0;
    extent[2] = 1;
    return pons_crop(o->g, input(o, s, -1, 1), start, extent, o->variant == 0 ? NULL : step);
}

static pons_node *build_pad(op_graph *o)
{
    pons_node *x = image(o);
    int64_t low[5], high[5];

    for (int i = 0; i < 5; i++) {
        int64_t most = o->variant == 2 ? x->shape.extent[i] : 4;

        low[i] = draw(&o->random, most);
        high[i] = draw(&o->random, most);
    }
    if (o->variant < 2)
        low[3] = 2;
    return pons_pad(o->g, x, (pons_pad_mode)(1 + o->variant), low, high);
}

static pons_node *build_pad_folding_back(op_graph *o)
{
    static const int64_t low[] = { 0, 2, 0, 1, 0 }, high[] = { 0, 1, 2, 0, 1 };
    pons_shape s = o->large ? image_shape(o) : (pons_shape){ 5, { 1, 3, 3, 2, 3 } };

    return pons_pad(o->g, input(o, s, -1, 1), o->variant == 0 ? PONS_PAD_EDGE : PONS_PAD_REFLECT,
                    low, high);
}

static pons_node *build_concatenate(op_graph *o)
{
    int axis = o->variant == 0 ? 4 : 1;
    pons_shape s = image_shape(o);
    pons_node *x[3];

    for (int i = 0; i < 3; i++) {
        s.extent[axis] = size(o);
        x[i] = input(o, s, -1, 1);
    }
    return pons_concatenate(o->g, 3, x, axis);
}

static pons_node *build_gather(op_graph *o)
{
    int axis = o->variant == 0 ? 4 : 2;
    pons_node *index = node_input(o->g, "index", PONS_I32, vector(4)), *x, *data;
    pons_shape s = image_shape(o);

    data = constant_leaf(o, node_input(o->g, "data", PONS_F32, s), -1, 1, false);
    constant_leaf(o, index, 0, (double)s.extent[axis], true);
    s.extent[axis] = 4;
    x = input(o, s, -1, 1);
    return pons_mul(o->g, x, pons_gather(o->g, data, index, axis));
}

static pons_node *build_all_reduce(op_graph *o)
{
    return pons_all_reduce(o->g, pons_square(o->g, image(o)));
}

/* ---- patches of resident cases --------------------------------------------------------------- */

/*
 * Coordinates are 0 or 1, so that cases and tables begin at byte 0 or 64. The largest voxel is 3.
 * Voxels are stored as values or as codes of one byte. Bytes of 60 to 63 are codes for a table of
 * 64, and four of them are a float from 0.01 to 0.8.
 */
static pons_node *build_patch(op_graph *o)
{
    pons_shape s = image_shape(o);
    const int64_t *e = s.extent;
    int64_t columns = PONS_PATCH_COORDINATES + e[1] + e[2] + e[3];
    pons_shape rows = { 2, { e[0], columns } };
    pons_node *held = node_resident(o->g, "held");
    pons_node *place = constant_leaf(o, node_input(o->g, "place", PONS_I32, rows), 0, 2, true);

    held->shape.extent[0] = PONS_PATCH_UNIT + 4 * 64 + 4 * 4 * e[4];
    constant_leaf(o, held, 60, 64, true);
    return pons_mul(o->g, input(o, s, -1, 1),
                    node_patch(o->g, held, place, o->variant == 0 ? PONS_F32 : PONS_U8, s));
}

static pons_node *build_patch_normal(op_graph *o)
{
    pons_shape s = image_shape(o), rows = { 2, { s.extent[0], PONS_PATCH_KEY_SIZE } };
    pons_node *key = constant_leaf(o, node_input(o->g, "key", PONS_I32, rows), 0, 2, true);

    return pons_mul(o->g, input(o, s, -1, 1), node_patch_normal(o->g, key, s));
}

/* Integers in 'columns' columns: 4 in the header, then voxel positions, then 'age'. */
static pons_node *places(op_graph *o, pons_shape s, int64_t columns, double age)
{
    const int64_t *e = s.extent;
    pons_graph *g = o->g;
    pons_node *column = pons_iota(g, 2, 1, columns);
    double first[] = { PONS_PATCH_COORDINATES, PONS_PATCH_COORDINATES + (double)e[1],
                       PONS_PATCH_COORDINATES + (double)(e[1] + e[2]),
                       PONS_PATCH_COORDINATES + (double)(e[1] + e[2] + e[3]) };
    double step[] = { (double)(e[2] * e[3]), (double)e[3], 1 };
    pons_node *x = pons_scalar(g, age);

    for (int a = 2; a >= 0; a--)
        x = pons_select(g, pons_less(g, column, pons_scalar(g, first[a + 1])),
                        pons_scale(g, pons_add_scalar(g, column, -first[a]), step[a]), x);
    x = pons_select(g, pons_less(g, column, pons_scalar(g, PONS_PATCH_COORDINATES)),
                    pons_scalar(g, 4), x);
    return pons_cast(g, pons_broadcast(g, x, (pons_shape){ 2, { e[0], columns } }), PONS_I32);
}

/*
 * Patches at one position, accumulated to floats of 0.01 to 0.8 at byte 256, or to values that
 * count as 0.
 */
static pons_node *build_patch_add(op_graph *o)
{
    pons_shape s = image_shape(o);
    const int64_t *e = s.extent;
    int64_t along = e[1] + e[2] + e[3], voxels = e[1] * e[2] * e[3];
    pons_node *held = node_resident(o->g, "held");
    pons_node *weight = node_input(o->g, "weight", PONS_F32,
                                   (pons_shape){ 3, { e[1], e[2], e[3] } });
    pons_node *sums;

    held->shape.extent[0] = 4 * PONS_PATCH_UNIT + voxels * e[4] * (int64_t)sizeof(float);
    constant_leaf(o, held, 60, 64, true);
    constant_leaf(o, weight, 0.1, 1, false);
    sums = node_patch_accumulate(o->g, held,
                                 places(o, s, PONS_PATCH_COORDINATES + 2 * along, o->variant),
                                 weight,
                                 constant_leaf(o, node_input(o->g, "x", PONS_F32, s), -1, 1,
                                               false));
    return pons_mul(o->g, input(o, s, -1, 1),
                    node_patch(o->g, sums, places(o, s, PONS_PATCH_COORDINATES + along, 0),
                               PONS_F32, s));
}

/* ---- ops of plugins -------------------------------------------------------------------------- */

static pons_node *build_op_image(op_graph *o)
{
    static const char *const options[] = { NULL, "radius = 2", "radius = 1 0 3" };
    pons_node *x = image(o);

    return pons_op(o->g, "box_mean", options[o->variant], 1, &x);
}

static pons_node *build_op_of_two(op_graph *o)
{
    pons_node *x[2] = { image(o), NULL };

    x[1] = input(o, vector(last_extent(x[0])), 0.5, 2);
    return pons_op(o->g, "op_breaks_rule", "", 2, x);
}

/* The ops stand where they are built. */
static pons_status load_ops(pons_error *err)
{
    static const char *const files[] = {
        "tests/plugins/.libs/box_mean.so", "tests/plugins/.libs/op_breaks_rule.so"
    };
    const plugin *p;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (plugin_load_file(files[i], sizeof(pons_op_operations), &p, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define MAP_VARIANTS_1 1
#define MAP_VARIANTS_2 5
#define MAP_VARIANTS_3 5
#define MAP_ROW(NAME, name, arity)                                                                \
    { PONS_MAP_##NAME, #name, MAP_VARIANTS_##arity, map_##name,                                   \
      PONS_MAP_##NAME == PONS_MAP_STOP_GRADIENT },

const op_case op_cases[] = {
    PONS_MAP_OPERATIONS(MAP_ROW)
    { NODE_CAST, "cast to whole numbers", 2, build_cast, false },
    { NODE_CAST, "cast to 16 bits", 2, build_cast_half, true },
    { PONS_MAP_ADD, "power with a constant exponent", 7, build_power, false },
    { NODE_INPUT, "activation", 11, build_activation, false },
    { NODE_PARAMETER, "parameter", 1, build_parameter, false },
    { NODE_STATE, "state", 1, build_state, false },
    { NODE_SCALAR, "scalar", 1, build_scalar, false },
    { NODE_SLOT, "slot", 2, build_slot, false },
    { NODE_GRADIENT, "folded gradient", 1, build_folded, false },
    { NODE_CONSTANT, "constant", 1, build_constant, false },
    { NODE_IOTA, "iota", 5, build_iota, false },
    { NODE_UNIFORM, "uniform", 1, build_uniform, false },
    { NODE_NORMAL, "normal", 1, build_normal, false },
    { NODE_UNIFORM, "dropout", 2, build_dropout, false },
    { NODE_SUM, "sum", 7, build_sum, false },
    { NODE_MAXIMUM, "maximum", 7, build_maximum, false },
    { NODE_MINIMUM, "minimum", 7, build_minimum, false },
    { NODE_REDUCE_MINMAX_GRADIENT, "extreme gradient", 7, build_maximum, false },
    { NODE_INPUT, "mean", 2, build_mean, false },
    { NODE_ARG_MAX, "arg_max", 5, build_arg_max, false },
    { NODE_MOMENTS, "moments", 7, build_moments, false },
    { NODE_SECOND, "moments in groups", 8, build_moments_in_groups, false },
    { PONS_MAP_SQRT, "norm", 6, build_norm, false },
    { PONS_MAP_EXP, "softmax", 4, build_softmax, false },
    { NODE_CONVOLUTION, "convolution", 6, build_convolution, false },
    { NODE_CONVOLUTION_INPUT_GRADIENT, "transposed convolution", 6, build_convolution_transposed,
        false },
    { NODE_CONVOLUTION_WEIGHT_GRADIENT, "convolution weight gradient", 6, build_convolution_weight,
      false },
    { NODE_MATMUL, "matmul", 4, build_matmul, false },
    { NODE_POOL, "pool", 4, build_pool, false },
    { NODE_POOL_GRADIENT, "pool gradient", 4, build_pool, false },
    { NODE_RESIZE, "resize", 4, build_resize, false },
    { NODE_RESIZE_GRADIENT, "resize gradient", 4, build_resize, false },
    { NODE_RESHAPE, "reshape", 1, build_reshape, false },
    { NODE_TRANSPOSE, "transpose", 3, build_transpose, false },
    { NODE_BROADCAST, "broadcast", 3, build_broadcast, false },
    { NODE_FLIP, "flip", 7, build_flip, false },
    { NODE_CROP, "crop", 2, build_crop, false },
    { NODE_PAD, "pad", 2, build_pad, false },
    { NODE_PAD, "pad reflecting", 3, build_pad_folding_back, false },
    { NODE_PAD_GRADIENT, "pad gradient", 2, build_pad_folding_back, false },
    { NODE_CONCATENATE, "concatenate", 2, build_concatenate, false },
    { NODE_GATHER, "gather", 2, build_gather, false },
    { NODE_ALL_REDUCE, "all_reduce of one replica", 1, build_all_reduce, false },
    { NODE_PATCH, "patch", 2, build_patch, false },
    { NODE_RESIDENT, "held", 1, build_patch, false },
    { NODE_PATCH_NORMAL, "patch_normal", 1, build_patch_normal, false },
    { NODE_PATCH_ACCUMULATE, "patch_add", 2, build_patch_add, true },
    { NODE_OP, "op of an image", 3, build_op_image, false },
    { NODE_OP, "op of an image and a vector", 1, build_op_of_two, false },
};
const int op_case_count = sizeof op_cases / sizeof op_cases[0];

/* ---- graphs ---------------------------------------------------------------------------------- */

static bool occurs(const pons_graph *g, int kind)
{
    for (int n = 0; n < g->node_count; n++)
        if (g->node[n]->kind == kind)
            return true;
    return false;
}

static pons_status differentiate(op_graph *o, pons_error *err)
{
    pons_node *of[OP_LEAVES], *gradient[OP_LEAVES];
    int count = 0;

    for (int i = 0; i < o->leaf_count; i++)
        if (o->leaf[i].wanted)
            of[count++] = o->leaf[i].node;
    if (graph_gradient(o->g, o->value, count, of, gradient, err) != PONS_OK)
        return err->status;
    count = 0;
    for (int i = 0; i < o->leaf_count; i++)
        if (o->leaf[i].wanted)
            o->leaf[i].gradient = gradient[count++];
    return PONS_OK;
}

/* Build the graph of the case and variant of 'o'. */
static pons_status make_graph(const op_case *c, op_graph *o, pons_error *err)
{
    pons_node *weights;

    o->g = graph_new(true);
    o->y = c->build(o);
    if (pons_graph_status(o->g, err) != PONS_OK)
        return err->status;
    weights = constant_leaf(o, node_input(o->g, "weights", PONS_F32, o->y->shape), -1, 1, false);
    o->value = pons_sum_all(o->g, pons_mul(o->g, o->y, weights));
    if (pons_graph_status(o->g, err) != PONS_OK || differentiate(o, err) != PONS_OK)
        return err->status;
    if (!occurs(o->g, c->kind) && o->variant == 0)
        return pons_fail(err, PONS_FAILURE, "case '%s' has no '%s'", c->name,
                         node_kinds[c->kind].name);
    return PONS_OK;
}

pons_status op_graph_make(const op_case *c, int variant, uint64_t seed, op_graph *o,
                          pons_error *err)
{
    *o = (op_graph){ .random = seed, .variant = variant };
    return make_graph(c, o, err);
}

void op_graph_free(op_graph *o)
{
    graph_free(o->g);
}

void op_graph_fill(const op_graph *o, evaluation *e)
{
    uint64_t random = o->random;

    for (int i = 0; i < o->leaf_count; i++) {
        const op_leaf *l = &o->leaf[i];
        int64_t count = shape_count(l->node->shape);
        int64_t *place = malloc(sizeof *place * (size_t)count);
        double apart = (l->high - l->low) / (double)count;

        for (int64_t j = 0; j < count; j++) {
            int64_t k = draw(&random, j + 1);

            place[j] = place[k];
            place[k] = j;
        }
        for (int64_t j = 0; j < count; j++) {
            double value = l->low + apart * ((double)place[j] + 0.13 + 0.11 * i);

            evaluation_set(e, l->node, j, l->whole ? (double)(int64_t)value : (float)value);
        }
        free(place);
    }
}

static const pons_step_key step_key = { 7, 3, 2 };

/* ---- timing ---------------------------------------------------------------------------------- */

/*
 * The node that does the work of 'x': leaves and reshapes are read, a second result is the first's.
 */
static const pons_node *worker_of(const pons_graph *g, const pons_node *x)
{
    if (x->kind == NODE_SECOND)
        return x->input[0];
    if (x->kind == NODE_UNIFORM || x->kind == NODE_NORMAL)
        return x;
    if (node_kinds[x->kind].class != CLASS_LEAF && x->kind != NODE_RESHAPE)
        return x;
    for (int n = x->number + 1; n < g->node_count; n++)
        for (int i = 0; i < g->node[n]->input_count; i++)
            if (g->node[n]->input[i] == x)
                return worker_of(g, g->node[n]);
    return NULL;
}

static int64_t bytes_of(const pons_node *x)
{
    int64_t bytes = shape_count(x->shape) * (int64_t)type_size(x->type);

    for (int i = 0; i < x->input_count; i++)
        if (i == 0 || x->input[i] != x->input[i - 1])
            bytes += shape_count(x->input[i]->shape) * (int64_t)type_size(x->input[i]->type);
    return bytes;
}

/* Find the largest working node of the timed kind. */
static void find_timed(op_timing *t)
{
    for (int n = 0; n < t->graph.g->node_count; n++) {
        const pons_node *x = t->graph.g->node[n];
        const pons_node *w = x->kind == t->op->kind ? worker_of(t->graph.g, x) : NULL;

        if (w == NULL || (t->node != NULL && bytes_of(w) <= t->bytes))
            continue;
        t->node = w;
        t->bytes = bytes_of(w);
    }
}

pons_status op_timing_make(int kind, op_timing *t, pons_error *err)
{
    *t = (op_timing){ .graph = { .random = 1, .large = true } };
    for (int i = 0; i < op_case_count && t->op == NULL; i++)
        if (op_cases[i].kind == kind)
            t->op = &op_cases[i];
    if (t->op == NULL)
        return pons_fail(err, PONS_FAILURE, "'%s' has no case", node_kinds[kind].name);
    if (load_ops(err) != PONS_OK || make_graph(t->op, &t->graph, err) != PONS_OK)
        return err->status;
    find_timed(t);
    if (t->node == NULL || t->bytes < LARGE_BYTES)
        return pons_fail(err, PONS_FAILURE, "'%s' has no timing case: %lld bytes, expected %d",
                         node_kinds[kind].name, (long long)t->bytes, LARGE_BYTES);
    return PONS_OK;
}

void op_timing_free(op_timing *t)
{
    graph_free(t->graph.g);
}

pons_status op_timing_run(const op_timing *t, const device *d, int rounds, op_time *out,
                          pons_error *err)
{
    evaluation *e = evaluation_new(t->graph.g, d, PONS_F32, err);

    if (e == NULL)
        return err->status;
    op_graph_fill(&t->graph, e);
    out->implementation = evaluation_implementation(e, t->node);
    out->seconds = evaluation_seconds(e, t->node, rounds, &step_key, err);
    evaluation_free(e);
    return err->status;
}

/* ---- comparisons ----------------------------------------------------------------------------- */

evaluation *op_graph_evaluate(const op_graph *o, const device *d, pons_type storage,
                              pons_error *err)
{
    evaluation *e = evaluation_new(o->g, d, storage, err);

    if (e == NULL)
        return NULL;
    op_graph_fill(o, e);
    if (evaluation_run(e, &step_key, err) == PONS_OK)
        return e;
    evaluation_free(e);
    return NULL;
}

static pons_status tensors_agree(const op_graph *o, const evaluation *expected,
                                 const evaluation *found, const pons_node *x, double tolerance,
                                 pons_error *err)
{
    int64_t count = shape_count(x->shape);
    double most = 1e-2;

    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(evaluation_get(expected, x, i)));
    for (int64_t i = 0; i < count; i++) {
        double a = evaluation_get(expected, x, i), b = evaluation_get(found, x, i);

        if (!(fabs(a - b) <= tolerance * most))
            return pons_fail(err, PONS_FAILURE,
                             "variant %d: '%s' element %lld is %.9g, expected %.9g", o->variant,
                             node_kinds[x->kind].name, (long long)i, b, a);
    }
    return PONS_OK;
}

pons_status op_graph_agrees(const op_graph *o, const evaluation *expected, const evaluation *found,
                            double tolerance, pons_error *err)
{
    pons_status status = tensors_agree(o, expected, found, o->y, tolerance, err);

    for (int i = 0; i < o->leaf_count && status == PONS_OK; i++)
        if (o->leaf[i].gradient != NULL)
            status = tensors_agree(o, expected, found, o->leaf[i].gradient, tolerance, err);
    return status;
}

pons_status op_table_each(int rounds,
                          pons_status (*check)(const op_case *c, op_graph *o, void *context,
                                               pons_error *err),
                          void *context, pons_error *err)
{
    if (load_ops(err) != PONS_OK)
        return err->status;
    for (int i = 0; i < op_case_count; i++) {
        const op_case *c = &op_cases[i];

        for (int round = 0; round < rounds * c->variants; round++) {
            pons_error inner = PONS_ERROR_INIT;
            op_graph o;
            pons_status status = op_graph_make(c, round % c->variants, (uint64_t)(1000 * i + round),
                                               &o, &inner);

            if (status == PONS_OK)
                status = check(c, &o, context, &inner);
            op_graph_free(&o);
            if (status != PONS_OK)
                return pons_fail(err, status, "%s: %s", c->name, inner.text);
        }
    }
    return PONS_OK;
}

static pons_status compare(const op_case *c, op_graph *o, void *context, pons_error *err)
{
    op_comparison *both = context;
    evaluation *expected = op_graph_evaluate(o, both->expected, both->storage, err);
    evaluation *found = expected != NULL ? op_graph_evaluate(o, both->found, both->storage, err)
                                         : NULL;
    pons_status status = err->status;

    if (found != NULL) {
        status = op_graph_agrees(o, expected, found, both->tolerance, err);
        evaluation_count(found, both->requests, both->declined);
    }
    evaluation_free(found);
    evaluation_free(expected);
    return status;
}

pons_status op_table_compare(op_comparison *o, int rounds, pons_error *err)
{
    return op_table_each(rounds, compare, o, err);
}
