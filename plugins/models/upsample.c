/*
 * upsample.c - interpolation, transposed convolution and pixel shuffle to twice the extent.
 */
#include "upsample.h"

const char *const upsample_names[] = { "nontrainable", "deconv", "pixelshuffle", NULL };

static pons_node *interpolate(pons_graph *g, const char *name, const upsampling *u, pons_node *x)
{
    const pons_conv conv = { .out = u->out, .bias = true };
    pons_shape s = pons_shape_of(x);

    if (pons_channels_of(x) != u->out)
        x = pons_layer_conv(g, pons_name(g, "%s.preconv", name), &conv, x);
    return pons_resize(g, x, u->align_corners ? PONS_RESIZE_LINEAR_ALIGNED : PONS_RESIZE_LINEAR,
                       (int64_t[]){ s.extent[1] * (u->flat ? 1 : 2), s.extent[2] * 2,
                                    s.extent[3] * 2 });
}

static pons_node *transposed(pons_graph *g, const char *name, const upsampling *u, pons_node *x)
{
    pons_conv conv = pons_conv_cube(u->out, 2, 2, 1, u->flat);

    conv.transposed = conv.bias = true;
    return pons_layer_conv(g, pons_name(g, "%s.deconv", name), &conv, x);
}

/*
 * Move the innermost factor 2 of the channels to the even and odd positions of an axis:
 * [outer, axis, rest, C 2] -> [outer, axis 2, rest, C].
 */
static pons_node *spread(pons_graph *g, pons_node *x, int axis)
{
    pons_shape s = pons_shape_of(x);
    int64_t outer = 1, rest = 1, count = s.extent[4] / 2;

    for (int i = 0; i < axis; i++)
        outer *= s.extent[i];
    for (int i = axis + 1; i < 4; i++)
        rest *= s.extent[i];
    x = pons_reshape(g, x,
                     pons_shape_make(5, (int64_t[]){ outer, s.extent[axis], rest, count, 2 }));
    x = pons_transpose(g, x, (int[]){ 0, 1, 4, 2, 3 });
    s.extent[axis] *= 2;
    s.extent[4] = count;
    return pons_reshape(g, x, s);
}

static pons_node *shuffle(pons_graph *g, const char *name, const upsampling *u, pons_node *x)
{
    int first = u->flat ? 2 : 1;
    pons_conv conv = pons_conv_cube(u->out * (u->flat ? 4 : 8), 3, 1, 1, u->flat);
    pons_pool mean = { PONS_POOL_MEAN, PONS_CUBE(2), PONS_CUBE(1), PONS_CUBE(0), PONS_CUBE(0),
                       false };
    int64_t low[5] = { 0, 1, 1, 1, 0 }, high[5] = { 0 };

    if (u->flat)
        mean.kernel[0] = 1, low[1] = 0;
    conv.bias = true;
    x = pons_layer_conv(g, pons_name(g, "%s.pixelshuffle.conv_block", name), &conv, x);
    for (int axis = 3; axis >= first; axis--)
        x = spread(g, x, axis);
    return pons_pooling(g, pons_pad(g, x, PONS_PAD_ZERO, low, high), &mean);
}

pons_node *upsample(pons_graph *g, const char *name, const upsampling *u, pons_node *x)
{
    if (u->mode == UPSAMPLE_PIXELSHUFFLE)
        return shuffle(g, name, u, x);
    if (u->mode == UPSAMPLE_DECONV)
        return transposed(g, name, u, x);
    return interpolate(g, name, u, x);
}
