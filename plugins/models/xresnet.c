/*
 * xresnet - residual classifiers with the refinements of He et al. 2019 (arXiv:1812.01187; fastai's
 * class XResNet, whose arguments and tensor names it keeps).
 *
 *   layer(x)    = relu(norm(conv(x)))
 *   stem(x)     = maxpool(layer(layer(layer(x)))),  extent 3, the first of stride 2
 *   block(x)    = relu(path(x) + shortcut(x)),  path: two convolutions, as a bottleneck three
 *   shortcut(x) = norm(conv1(meanpool(x))),  the pool where the block has a stride, the
 *                 convolution where the width changes
 *   logits      = linear(dropout(mean of the last stage)),  [N, 1, 1, 1, classes]
 *
 * The scale of the last norm of a path is 0 at first, so that a block begins as its shortcut.
 */
#include "resnet_blocks.h"

typedef struct xresnet {
    int depth;
    pons_integers layers, stem_szs;
    double widen, p;
} xresnet;

enum { STEM_LAYERS = 3, STAGES_MAX = 8 };

static const pons_option options[] = {
    PONS_CHOICE(xresnet, depth, "50", resnet_depth_names,
                "Number of layers; blocks of two convolutions up to 34, bottlenecks from 50."),
    PONS_INTEGERS(xresnet, layers, "", 1, 1000, "Blocks of each stage; not given: those of depth.",
                  .count_min = RESNET_STAGES, .count_max = STAGES_MAX),
    PONS_INTEGERS(xresnet, stem_szs, "32 32 64", 1, 65536, "Channels of the first convolutions.",
                  .count_min = STEM_LAYERS, .count_max = STEM_LAYERS),
    PONS_REAL(xresnet, widen, "1", 1.0 / 64, 64,
              "Factor on the widths of the stages: 64 128 256 512, and 256 for each further one."),
    PONS_REAL(xresnet, p, "0", 0, 1, "Probability of dropout before the last layer."),
    PONS_OPTIONS_END
};

/* The context of all builders. */
typedef struct net {
    pons_graph *g;
    const xresnet *c;
    const resnet_depth *depth;
    int stages;
    bool flat;
} net;

/* norm(conv(x)), parameters NAME.0 and NAME.1 */
static pons_node *convolve(const net *n, const char *name, int64_t out, int kernel, int stride,
                           pons_node *x)
{
    pons_conv conv = pons_conv_cube(out, kernel, stride, 1, n->flat);

    conv.init = PONS_CONV_HE_RELU;
    x = pons_layer_conv(n->g, pons_name(n->g, "%s.0", name), &conv, x);
    return resnet_norm(n->g, pons_name(n->g, "%s.1", name), x);
}

static pons_node *stem(const net *n, pons_node *x)
{
    for (int i = 0; i < STEM_LAYERS; i++)
        x = pons_relu(n->g, convolve(n, pons_name(n->g, "%d", i), n->c->stem_szs.item[i], 3,
                                     i == 0 ? 2 : 1, x));
    return resnet_max_pool(n->g, n->flat, x);
}

/* The mean of 2 voxels along each axis; windows at the end may be smaller. */
static pons_node *halve(const net *n, pons_node *x)
{
    int lone = n->flat ? 1 : 2;
    const pons_pool pool = { PONS_POOL_MEAN, { lone, 2, 2 }, { lone, 2, 2 }, .ceil = true };

    return pons_pooling(n->g, x, &pool);
}

static pons_node *shortcut(const net *n, const char *name, int64_t out, int stride, pons_node *x)
{
    if (stride > 1)
        x = halve(n, x);
    if (pons_channels_of(x) == out)
        return x;
    return convolve(n, pons_name(n->g, "%s.idpath.%d", name, stride > 1 ? 1 : 0), out, 1, 1, x);
}

static pons_node *block(const net *n, const char *name, int64_t width, int stride, pons_node *x)
{
    pons_graph *g = n->g;
    resnet_path path = { .width = width, .stride = stride, .bottleneck = n->depth->bottleneck,
                         .flat = n->flat, .zero = true, .init = PONS_CONV_HE_RELU };
    int64_t out = path.bottleneck ? RESNET_EXPANSION * width : width;

    for (int i = 0; i < 3; i++) {
        path.conv[i] = pons_name(g, "%s.convpath.%d.0", name, i);
        path.norm[i] = pons_name(g, "%s.convpath.%d.1", name, i);
    }
    return pons_relu(g, pons_add(g, resnet_path_nodes(g, &path, x),
                                 shortcut(n, name, out, stride, x)));
}

static int64_t width_of(const xresnet *c, int stage)
{
    return (int64_t)((stage < RESNET_STAGES ? 64 << stage : 256) * c->widen);
}

/* Modules are numbered: the stem 0 to 2, its pool 3, stages from 4 on. */
static pons_node *stage(const net *n, int index, pons_node *x)
{
    const pons_integers *layers = &n->c->layers;
    int64_t count = layers->count > 0 ? layers->item[index] : n->depth->layers[index];

    for (int64_t i = 0; i < count; i++)
        x = block(n, pons_name(n->g, "%d.%d", STEM_LAYERS + 1 + index, (int)i),
                  width_of(n->c, index), index > 0 && i == 0 ? 2 : 1, x);
    return x;
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const xresnet *c = config;
    const net n = { g, c, &resnet_depths[c->depth],
                    c->layers.count > 0 ? c->layers.count : RESNET_STAGES, task->flat };
    int last = STEM_LAYERS + 1 + n.stages;
    pons_node *x = stem(&n, pons_input_named(g, inputs, "image"));

    for (int i = 0; i < n.stages; i++)
        x = stage(&n, i, x);
    x = pons_dropout(g, resnet_global_mean(g, x), c->p, pons_name(g, "%d", last + 2));
    outputs->count = 1;
    outputs->item[0] = resnet_logits(g, pons_name(g, "%d", last + 3), task->classes, x);
    return pons_graph_status(g, err);
}

static const pons_model_operations operations = { .build = build };

PONS_MODEL(xresnet, "1.0", "residual classifier with a deep stem", options, operations);
