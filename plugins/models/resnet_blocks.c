/*
 * resnet_blocks.c - the parts of residual classifiers as compositions of layers.
 */
#include "resnet_blocks.h"

const char *const resnet_depth_names[] = { "10", "18", "34", "50", "101", "152", "200", NULL };

const resnet_depth resnet_depths[] = {
    { false, { 1, 1, 1, 1 } },  { false, { 2, 2, 2, 2 } },  { false, { 3, 4, 6, 3 } },
    { true, { 3, 4, 6, 3 } },   { true, { 3, 4, 23, 3 } },  { true, { 3, 8, 36, 3 } },
    { true, { 3, 24, 36, 3 } }
};

pons_node *resnet_norm(pons_graph *g, const char *name, pons_node *x)
{
    return pons_layer_norm(g, name, &(pons_norm){ PONS_NORM_BATCH, .affine = true }, x);
}

/* The geometry of convolution i of a path. */
static pons_conv path_conv(const resnet_path *p, int i)
{
    bool wide = p->bottleneck && i == 2, pointwise = p->bottleneck && i != 1;
    bool strided = i == (p->bottleneck ? 1 : 0);
    pons_conv c = pons_conv_cube(wide ? RESNET_EXPANSION * p->width : p->width, pointwise ? 1 : 3,
                                 strided ? p->stride : 1, 1, p->flat);

    c.init = p->init;
    return c;
}

pons_node *resnet_path_nodes(pons_graph *g, const resnet_path *p, pons_node *x)
{
    int count = p->bottleneck ? 3 : 2;

    for (int i = 0; i < count; i++) {
        pons_conv conv = path_conv(p, i);

        x = pons_layer_conv(g, p->conv[i], &conv, x);
        if (p->zero && i == count - 1)
            pons_vector_parameter(g, p->norm[i], "weight", PONS_ROLE_NORM_SCALE, conv.out, 0);
        x = resnet_norm(g, p->norm[i], x);
        x = i < count - 1 ? pons_relu(g, x) : x;
    }
    return x;
}

pons_node *resnet_max_pool(pons_graph *g, bool flat, pons_node *x)
{
    int lone = flat ? 1 : 3;
    const pons_pool p = { PONS_POOL_MAX, { lone, 3, 3 }, { flat ? 1 : 2, 2, 2 },
                          { lone / 2, 1, 1 }, { lone / 2, 1, 1 }, .ceil = false };

    return pons_pooling(g, x, &p);
}

pons_node *resnet_global_mean(pons_graph *g, pons_node *x)
{
    return pons_mean(g, x, PONS_SPATIAL);
}

pons_node *resnet_logits(pons_graph *g, const char *name, int64_t classes, pons_node *x)
{
    int64_t n = pons_shape_of(x).extent[0], channels = pons_channels_of(x);

    x = pons_reshape(g, x, pons_shape_make(2, (int64_t[]){ n, channels }));
    x = pons_layer_linear(g, name, classes, x);
    return pons_reshape(g, x, pons_shape_make(5, (int64_t[]){ n, 1, 1, 1, classes }));
}
