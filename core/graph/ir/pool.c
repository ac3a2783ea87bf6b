/*
 * pool.c - pooling and resizing over D, H, W with their gradients.
 */
#include "graph/ir/ir_internal.h"

/*
 * Output extent of pooling along one axis. With 'ceil' the last window may reach beyond the
 * padding, but it begins inside the image or its low padding, as in PyTorch.
 */
static int64_t pooled(int64_t n, const pons_pool *p, int i)
{
    int64_t span = n + p->pad_low[i] + p->pad_high[i] - p->kernel[i];
    int64_t count;

    span += p->ceil ? p->stride[i] - 1 : 0;
    if (span < 0)
        return 0;
    count = span / p->stride[i] + 1;
    if (p->ceil && (count - 1) * p->stride[i] >= n + p->pad_low[i])
        count--;
    return count;
}

pons_node *pons_pooling(pons_graph *g, pons_node *x, const pons_pool *p)
{
    node_attribute a = { .pool = *p };
    pons_shape shape;
    char text[160];

    if (!inputs_given(g, NODE_POOL, 1, &x))
        return g->failed;
    shape = x->shape;
    shape_text(shape, text, sizeof text);
    if (shape.rank != 5 || (p->mode != PONS_POOL_MAX && p->mode != PONS_POOL_MEAN))
        return node_refuse(g, NODE_POOL, "image %s must have 5 axes and the mode be known", text);
    for (int i = 0; i < 3; i++) {
        if (p->kernel[i] < 1 || p->stride[i] < 1 || p->pad_low[i] < 0 || p->pad_high[i] < 0 ||
            2 * p->pad_low[i] > p->kernel[i] || 2 * p->pad_high[i] > p->kernel[i])
            return node_refuse(g, NODE_POOL, "kernel %d, stride %d, padding %d %d along axis %d",
                               p->kernel[i], p->stride[i], p->pad_low[i], p->pad_high[i], i);
        shape.extent[1 + i] = pooled(shape.extent[1 + i], p, i);
        if (shape.extent[1 + i] < 1)
            return node_refuse(g, NODE_POOL, "kernel %d reaches beyond image %s", p->kernel[i],
                               text);
    }
    return node_new(g, NODE_POOL, PONS_F32, shape, 1, &x, &a);
}

static pons_node *node_pool_gradient(pons_graph *g, pons_node *x, pons_node *dy, const pons_pool *p)
{
    node_attribute a = { .pool = *p };
    pons_node *in[] = { x, dy };

    return node_new(g, NODE_POOL_GRADIENT, PONS_F32, x->shape, 2, in, &a);
}

pons_node *pons_resize(pons_graph *g, pons_node *x, pons_resize_mode mode, const int64_t extent[3])
{
    node_attribute a = { .resize = { mode } };
    pons_shape shape;

    if (!inputs_given(g, NODE_RESIZE, 1, &x))
        return g->failed;
    shape = x->shape;
    if (shape.rank != 5)
        return node_refuse(g, NODE_RESIZE, "image must have 5 axes, found %d", shape.rank);
    if (mode < PONS_RESIZE_NEAREST || mode > PONS_RESIZE_LINEAR_ALIGNED)
        return node_refuse(g, NODE_RESIZE, "unknown mode %d", (int)mode);
    for (int i = 0; i < 3; i++)
        shape.extent[1 + i] = extent[i];
    if (!shape_valid(g, NODE_RESIZE, shape))
        return g->failed;
    if (shape_equal(shape, x->shape))
        return x;
    return node_new(g, NODE_RESIZE, mode >= PONS_RESIZE_LINEAR ? PONS_F32 : x->type, shape, 1, &x,
                    &a);
}

static pons_node *node_resize_gradient(pons_graph *g, pons_node *dy, pons_resize_mode mode,
                                       pons_shape shape)
{
    node_attribute a = { .resize = { mode } };

    return node_new(g, NODE_RESIZE_GRADIENT, PONS_F32, shape, 1, &dy, &a);
}

/* ---- gradients ------------------------------------------------------------------------------- */

void gradient_pool(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                   pons_node **gradient)
{
    gradient[0] = node_pool_gradient(g, x->input[0], dx, &x->attribute.pool);
}

void gradient_resize(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                     pons_node **gradient)
{
    gradient[0] = node_resize_gradient(g, dx, x->attribute.resize.mode, x->input[0]->shape);
}
