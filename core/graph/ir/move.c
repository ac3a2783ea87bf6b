/*
 * move.c - nodes that move data: reshape, transpose, flip, crop, pad, concatenate, gather.
 */

#include "graph/ir/ir_internal.h"

pons_node *pons_reshape(pons_graph *g, pons_node *x, pons_shape shape)
{
    char found[160], expected[160];

    if (!inputs_given(g, NODE_RESHAPE, 1, &x) || !shape_valid(g, NODE_RESHAPE, shape))
        return g->failed;
    if (shape_count(shape) != shape_count(x->shape))
        return node_refuse(g, NODE_RESHAPE, "%s does not have the elements of %s",
                           shape_text(shape, found, sizeof found),
                           shape_text(x->shape, expected, sizeof expected));
    if (x->kind == NODE_RESHAPE)
        x = x->input[0];
    if (shape_equal(shape, x->shape))
        return x;
    return node_new(g, NODE_RESHAPE, x->type, shape, 1, &x, NULL);
}

pons_node *pons_transpose(pons_graph *g, pons_node *x, const int *order)
{
    node_attribute a = { .axis = 0 };
    unsigned seen = 0;
    bool same = true;
    pons_shape shape;

    if (!inputs_given(g, NODE_TRANSPOSE, 1, &x))
        return g->failed;
    shape = x->shape;
    for (int i = 0; i < shape.rank; i++) {
        if (order[i] < 0 || order[i] >= shape.rank || (seen & PONS_AXIS(order[i])) != 0)
            return node_refuse(g, NODE_TRANSPOSE, "order is no permutation of %d axes", shape.rank);
        seen |= PONS_AXIS(order[i]);
        same = same && order[i] == i;
        shape.extent[i] = x->shape.extent[order[i]];
        a.transpose.order[i] = order[i];
    }
    return same ? x : node_new(g, NODE_TRANSPOSE, x->type, shape, 1, &x, &a);
}

pons_node *node_repeat(pons_graph *g, pons_node *x, pons_shape shape)
{
    if (node_failed(x) || shape_equal(x->shape, shape))
        return x;
    if (x->kind == NODE_BROADCAST)
        x = x->input[0];
    return node_new(g, NODE_BROADCAST, x->type, shape, 1, &x, NULL);
}

pons_node *pons_broadcast(pons_graph *g, pons_node *x, pons_shape shape)
{
    char found[160], expected[160];
    pons_shape both;

    if (!inputs_given(g, NODE_BROADCAST, 1, &x) || !shape_valid(g, NODE_BROADCAST, shape))
        return g->failed;
    if (!shape_broadcast(x->shape, shape, &both) || !shape_equal(both, shape))
        return node_refuse(g, NODE_BROADCAST, "%s cannot be repeated to %s",
                           shape_text(x->shape, found, sizeof found),
                           shape_text(shape, expected, sizeof expected));
    return node_repeat(g, x, shape);
}

pons_node *pons_flip(pons_graph *g, pons_node *x, unsigned axes)
{
    node_attribute a = { .flip = { axes } };

    if (!inputs_given(g, NODE_FLIP, 1, &x) || !axes_valid(g, NODE_FLIP, x, axes))
        return g->failed;
    return axes == 0 ? x : node_new(g, NODE_FLIP, x->type, x->shape, 1, &x, &a);
}

pons_node *pons_crop(pons_graph *g, pons_node *x, const int64_t *start, const int64_t *extent,
                     const int64_t *step)
{
    node_attribute a = { .axis = 0 };
    pons_shape shape;
    char text[160];

    if (!inputs_given(g, NODE_CROP, 1, &x))
        return g->failed;
    shape = x->shape;
    for (int i = 0; i < shape.rank; i++) {
        int64_t by = step != NULL ? step[i] : 1;

        if (by < 1 || start[i] < 0 || extent[i] < 1 ||
            start[i] + (extent[i] - 1) * by >= x->shape.extent[i])
            return node_refuse(g, NODE_CROP, "%lld elements from %lld by %lld along axis %d of %s",
                               (long long)extent[i], (long long)start[i], (long long)by, i,
                               shape_text(x->shape, text, sizeof text));
        a.crop.start[i] = start[i];
        a.crop.step[i] = by;
        shape.extent[i] = extent[i];
    }
    if (shape_equal(shape, x->shape))
        return x;
    return node_new(g, NODE_CROP, x->type, shape, 1, &x, &a);
}

static pons_node *node_pad(pons_graph *g, pons_node *x, pons_pad_mode mode, const int64_t *low,
                           const int64_t *high, const int64_t *step)
{
    node_attribute a = { .pad = { .mode = mode } };
    pons_shape shape = x->shape;

    for (int i = 0; i < shape.rank; i++) {
        a.pad.low[i] = low[i];
        a.pad.high[i] = high[i];
        a.pad.step[i] = step != NULL ? step[i] : 1;
        shape.extent[i] = low[i] + (shape.extent[i] - 1) * a.pad.step[i] + 1 + high[i];
    }
    if (!shape_valid(g, NODE_PAD, shape))
        return g->failed;
    if (shape_equal(shape, x->shape))
        return x;
    return node_new(g, NODE_PAD, x->type, shape, 1, &x, &a);
}

pons_node *pons_pad(pons_graph *g, pons_node *x, pons_pad_mode mode, const int64_t *low,
                    const int64_t *high)
{
    if (!inputs_given(g, NODE_PAD, 1, &x))
        return g->failed;
    if (mode < PONS_PAD_ZERO || mode > PONS_PAD_REFLECT)
        return node_refuse(g, NODE_PAD, "unknown mode %d", (int)mode);
    for (int i = 0; i < x->shape.rank; i++) {
        int64_t n = x->shape.extent[i];

        if (low[i] < 0 || high[i] < 0 ||
            (mode == PONS_PAD_REFLECT && (low[i] >= n || high[i] >= n)))
            return node_refuse(g, NODE_PAD, "%lld and %lld around %lld elements of axis %d",
                               (long long)low[i], (long long)high[i], (long long)n, i);
    }
    return node_pad(g, x, mode, low, high, NULL);
}

static pons_node *node_pad_gradient(pons_graph *g, pons_node *dy, const pons_pad_attributes *pad,
                                    pons_shape shape)
{
    node_attribute a = { .pad = *pad };

    return node_new(g, NODE_PAD_GRADIENT, PONS_F32, shape, 1, &dy, &a);
}

pons_node *pons_concatenate(pons_graph *g, int count, pons_node *const *x, int axis)
{
    node_attribute a = { .axis = axis };
    char first[160], found[160];
    pons_shape shape;

    if (count < 1 || count > PONS_KERNEL_INPUTS_MAX)
        return node_refuse(g, NODE_CONCATENATE, "%d operands, expected 1 to %d", count,
                           PONS_KERNEL_INPUTS_MAX);
    if (!inputs_given(g, NODE_CONCATENATE, count, x))
        return g->failed;
    shape = x[0]->shape;
    if (axis < 0 || axis >= shape.rank)
        return node_refuse(g, NODE_CONCATENATE, "axis %d of %d", axis, shape.rank);
    for (int i = 1; i < count; i++) {
        pons_shape other = x[i]->shape;
        int64_t along = axis < other.rank ? other.extent[axis] : 0;

        if (axis < other.rank)
            other.extent[axis] = shape.extent[axis];
        if (!shape_equal(other, shape) || x[i]->type != x[0]->type)
            return node_refuse(g, NODE_CONCATENATE, "operands %s and %s along axis %d",
                               shape_text(x[0]->shape, first, sizeof first),
                               shape_text(x[i]->shape, found, sizeof found), axis);
        shape.extent[axis] += along;
    }
    return count == 1 ? x[0] : node_new(g, NODE_CONCATENATE, x[0]->type, shape, count, x, &a);
}

pons_node *pons_gather(pons_graph *g, pons_node *x, pons_node *index, int axis)
{
    node_attribute a = { .axis = axis };
    pons_node *in[] = { x, index };
    pons_shape shape;

    if (!inputs_given(g, NODE_GATHER, 2, in))
        return g->failed;
    shape = x->shape;
    if (axis < 0 || axis >= shape.rank)
        return node_refuse(g, NODE_GATHER, "axis %d of %d", axis, shape.rank);
    if (index->type != PONS_I32 || index->shape.rank != 1)
        return node_refuse(g, NODE_GATHER, "the index must be i32 with one axis");
    shape.extent[axis] = index->shape.extent[0];
    return node_new(g, NODE_GATHER, x->type, shape, 2, in, &a);
}

/* ---- gradients ------------------------------------------------------------------------------- */

void gradient_reshape(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                      pons_node **gradient)
{
    gradient[0] = pons_reshape(g, dx, x->input[0]->shape);
}

void gradient_transpose(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                        pons_node **gradient)
{
    int back[PONS_RANK_MAX];

    for (int i = 0; i < x->shape.rank; i++)
        back[x->attribute.transpose.order[i]] = i;
    gradient[0] = pons_transpose(g, dx, back);
}

void gradient_broadcast(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                        pons_node **gradient)
{
    gradient[0] = dx; /* The gradient pass sums over the repetitions. */
}

void gradient_flip(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                   pons_node **gradient)
{
    gradient[0] = pons_flip(g, dx, x->attribute.flip.axes);
}

void gradient_crop(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                   pons_node **gradient)
{
    const pons_crop_attributes *c = &x->attribute.crop;
    int64_t high[PONS_RANK_MAX];

    for (int i = 0; i < x->shape.rank; i++)
        high[i] = x->input[0]->shape.extent[i] - 1 - c->start[i] -
                  (x->shape.extent[i] - 1) * c->step[i];
    gradient[0] = node_pad(g, dx, PONS_PAD_ZERO, c->start, high, c->step);
}

void gradient_pad(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                  pons_node **gradient)
{
    const pons_pad_attributes *p = &x->attribute.pad;
    pons_shape shape = x->input[0]->shape;

    if (p->mode == PONS_PAD_ZERO)
        gradient[0] = pons_crop(g, dx, p->low, shape.extent, p->step);
    else
        gradient[0] = node_pad_gradient(g, dx, p, shape);
}

void gradient_concatenate(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                          pons_node **gradient)
{
    int64_t start[PONS_RANK_MAX] = { 0 };

    for (int i = 0; i < x->input_count; i++) {
        if (wanted[i])
            gradient[i] = pons_crop(g, dx, start, x->input[i]->shape.extent, NULL);
        start[x->attribute.axis] += x->input[i]->shape.extent[x->attribute.axis];
    }
}
