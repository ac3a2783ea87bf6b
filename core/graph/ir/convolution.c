/*
 * convolution.c - convolution with its two gradients, and the matrix product. The gradient of each
 * is again one of them.
 */
#include <string.h>

#include "graph/ir/ir_internal.h"

/* Output extent of a convolution along one axis; at most 0 where the kernel does not fit. */
static int64_t extent_after(int64_t n, int64_t kernel, const pons_convolution *c, int axis)
{
    int64_t span = n + c->pad_low[axis] + c->pad_high[axis] - c->dilation[axis] * (kernel - 1) - 1;

    return span < 0 ? 0 : span / c->stride[axis] + 1;
}

static bool attributes_valid(pons_graph *g, int kind, const pons_convolution *c)
{
    for (int i = 0; i < 3; i++) {
        if (c->stride[i] < 1 || c->dilation[i] < 1 || c->pad_low[i] < 0 || c->pad_high[i] < 0) {
            node_refuse(g, kind, "stride %d, dilation %d, padding %d %d along axis %d",
                        c->stride[i], c->dilation[i], c->pad_low[i], c->pad_high[i], i);
            return false;
        }
    }
    if (c->groups >= 1)
        return true;
    node_refuse(g, kind, "%d groups", c->groups);
    return false;
}

/*
 * Check x [N, D, H, W, I], w [O, kD, kH, kW, I / groups] and y [N, D', H', W', O] against each
 * other. The shape of y is an input when 'complete', else an output.
 */
static bool shapes_agree(pons_graph *g, int kind, pons_shape x, pons_shape w, pons_shape *y,
                         bool complete, const pons_convolution *c)
{
    pons_shape made = { 5, { x.extent[0], 0, 0, 0, w.extent[0] } };
    char x_text[160], w_text[160], y_text[160];

    shape_text(x, x_text, sizeof x_text);
    shape_text(w, w_text, sizeof w_text);
    if (x.rank != 5 || w.rank != 5 || (complete && y->rank != 5)) {
        node_refuse(g, kind, "image %s and weight %s must have 5 axes", x_text, w_text);
        return false;
    }
    if (!attributes_valid(g, kind, c))
        return false;
    if (x.extent[4] != w.extent[4] * c->groups || w.extent[0] % c->groups != 0) {
        node_refuse(g, kind, "weight %s does not fit image %s in %d groups", w_text, x_text,
                    c->groups);
        return false;
    }
    for (int i = 0; i < 3; i++)
        made.extent[1 + i] = extent_after(x.extent[1 + i], w.extent[1 + i], c, i);
    if (made.extent[1] < 1 || made.extent[2] < 1 || made.extent[3] < 1) {
        node_refuse(g, kind, "weight %s reaches beyond image %s and its padding", w_text, x_text);
        return false;
    }
    if (!complete)
        *y = made;
    else if (!shape_equal(*y, made)) {
        node_refuse(g, kind, "output %s does not belong to image %s and weight %s",
                    shape_text(*y, y_text, sizeof y_text), x_text, w_text);
        return false;
    }
    return true;
}

pons_node *pons_convolve(pons_graph *g, pons_node *x, pons_node *w, const pons_convolution *c)
{
    node_attribute a = { .convolution = *c };
    pons_node *in[] = { x, w };
    pons_shape y;

    if (!inputs_given(g, NODE_CONVOLUTION, 2, in) ||
        !shapes_agree(g, NODE_CONVOLUTION, x->shape, w->shape, &y, false, c))
        return g->failed;
    return node_new(g, NODE_CONVOLUTION, PONS_F32, y, 2, in, &a);
}

pons_node *pons_convolve_input_gradient(pons_graph *g, pons_node *y, pons_node *w,
                                        const pons_convolution *c, const int64_t extent[3])
{
    const int kind = NODE_CONVOLUTION_INPUT_GRADIENT;
    node_attribute a = { .convolution = *c };
    pons_node *in[] = { y, w };
    pons_shape x = { 5, { 0, extent[0], extent[1], extent[2], 0 } };

    if (!inputs_given(g, kind, 2, in))
        return g->failed;
    if (y->shape.rank != 5 || w->shape.rank != 5)
        return node_refuse(g, kind, "operands must have 5 axes, found %d and %d", y->shape.rank,
                           w->shape.rank);
    x.extent[0] = y->shape.extent[0];
    x.extent[4] = w->shape.extent[4] * c->groups;
    if (!shape_valid(g, kind, x) ||
        !shapes_agree(g, kind, x, w->shape, &y->shape, true, c))
        return g->failed;
    return node_new(g, kind, PONS_F32, x, 2, in, &a);
}

pons_node *pons_convolve_weight_gradient(pons_graph *g, pons_node *x, pons_node *y,
                                         const pons_convolution *c, const int64_t kernel[3])
{
    const int kind = NODE_CONVOLUTION_WEIGHT_GRADIENT;
    node_attribute a = { .convolution = *c };
    pons_node *in[] = { x, y };
    pons_shape w = { 5, { 0, kernel[0], kernel[1], kernel[2], 0 } };

    if (!inputs_given(g, kind, 2, in))
        return g->failed;
    if (y->shape.rank != 5 || x->shape.rank != 5 || c->groups < 1)
        return node_refuse(g, kind, "operands must have 5 axes, found %d and %d", x->shape.rank,
                           y->shape.rank);
    w.extent[0] = y->shape.extent[4];
    w.extent[4] = x->shape.extent[4] / c->groups;
    if (!shape_valid(g, kind, w) || !shapes_agree(g, kind, x->shape, w, &y->shape, true, c))
        return g->failed;
    return node_new(g, kind, PONS_F32, w, 2, in, &a);
}

pons_node *pons_convolve_transposed(pons_graph *g, pons_node *y, pons_node *w,
                                    const pons_convolution *c, const int output_padding[3])
{
    const int kind = NODE_CONVOLUTION_INPUT_GRADIENT;
    pons_node *in[] = { y, w };
    int64_t extent[3];

    if (!inputs_given(g, kind, 2, in))
        return g->failed;
    if (y->shape.rank != 5 || w->shape.rank != 5)
        return node_refuse(g, kind, "operands must have 5 axes, found %d and %d", y->shape.rank,
                           w->shape.rank);
    for (int i = 0; i < 3; i++)
        extent[i] = (y->shape.extent[1 + i] - 1) * c->stride[i] - c->pad_low[i] - c->pad_high[i] +
                    c->dilation[i] * (w->shape.extent[1 + i] - 1) + 1 + output_padding[i];
    return pons_convolve_input_gradient(g, y, w, c, extent);
}

/* ---- matrix product -------------------------------------------------------------------------- */

pons_node *pons_matmul(pons_graph *g, pons_node *a, pons_node *b, bool transpose_a,
                       bool transpose_b)
{
    node_attribute attribute = { .matmul = { transpose_a, transpose_b } };
    pons_node *in[] = { a, b };
    char a_text[160], b_text[160];
    pons_shape shape;
    int rank;

    if (!inputs_given(g, NODE_MATMUL, 2, in))
        return g->failed;
    shape = a->shape;
    rank = shape.rank;
    if (rank < 2 || b->shape.rank != rank ||
        memcmp(shape.extent, b->shape.extent, sizeof(int64_t) * (size_t)(rank - 2)) != 0 ||
        a->shape.extent[rank - (transpose_a ? 2 : 1)] !=
            b->shape.extent[rank - (transpose_b ? 1 : 2)])
        return node_refuse(g, NODE_MATMUL, "%s%s does not multiply %s%s",
                           shape_text(a->shape, a_text, sizeof a_text),
                           transpose_a ? " transposed" : "",
                           shape_text(b->shape, b_text, sizeof b_text),
                           transpose_b ? " transposed" : "");
    shape.extent[rank - 2] = a->shape.extent[rank - (transpose_a ? 1 : 2)];
    shape.extent[rank - 1] = b->shape.extent[rank - (transpose_b ? 2 : 1)];
    return node_new(g, NODE_MATMUL, PONS_F32, shape, 2, in, &attribute);
}

/* ---- gradients ------------------------------------------------------------------------------- */

void gradient_convolution(pons_graph *g, pons_node *y, pons_node *dy, const bool *wanted,
                          pons_node **gradient)
{
    const pons_convolution *c = &y->attribute.convolution;
    pons_node *x = y->input[0], *w = y->input[1];

    if (wanted[0])
        gradient[0] = pons_convolve_input_gradient(g, dy, w, c, x->shape.extent + 1);
    if (wanted[1])
        gradient[1] = pons_convolve_weight_gradient(g, x, dy, c, w->shape.extent + 1);
}

void gradient_convolution_input_gradient(pons_graph *g, pons_node *x, pons_node *dx,
                                         const bool *wanted, pons_node **gradient)
{
    const pons_convolution *c = &x->attribute.convolution;
    pons_node *y = x->input[0], *w = x->input[1];

    if (wanted[0])
        gradient[0] = pons_convolve(g, dx, w, c);
    if (wanted[1])
        gradient[1] = pons_convolve_weight_gradient(g, dx, y, c, w->shape.extent + 1);
}

void gradient_convolution_weight_gradient(pons_graph *g, pons_node *w, pons_node *dw,
                                          const bool *wanted, pons_node **gradient)
{
    const pons_convolution *c = &w->attribute.convolution;
    pons_node *x = w->input[0], *y = w->input[1];

    if (wanted[0])
        gradient[0] = pons_convolve_input_gradient(g, y, dw, c, x->shape.extent + 1);
    if (wanted[1])
        gradient[1] = pons_convolve(g, x, dw, c);
}

void gradient_matmul(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                     pons_node **gradient)
{
    bool ta = x->attribute.matmul.transpose_a, tb = x->attribute.matmul.transpose_b;
    pons_node *a = x->input[0], *b = x->input[1];

    if (wanted[0])
        gradient[0] = ta ? pons_matmul(g, b, dx, tb, true) : pons_matmul(g, dx, b, false, !tb);
    if (wanted[1])
        gradient[1] = tb ? pons_matmul(g, dx, a, true, ta) : pons_matmul(g, a, dx, !ta, false);
}
