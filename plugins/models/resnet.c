/*
 * resnet - residual classifiers (He et al. 2016, arXiv:1512.03385; MONAI's class ResNet, whose
 * arguments and tensor names it keeps; in 2D also torchvision's).
 *
 *   stem(x)  = maxpool(relu(norm(conv(x))))
 *   block(x) = relu(path(x) + shortcut(x)),  path: two convolutions, as a bottleneck three
 *   logits   = fc(mean of stage_4(... stage_1(stem(x)))),  [N, 1, 1, 1, classes]
 *
 * The option use_conv gives the network the head of MONAI's NetAdapter: fc, a convolution of extent
 * 1 after an average pool of stride 1. A larger image then has a map of logits. Tensors of the body
 * are called features.0 (the first convolution), features.1, features.4 (the first stage) to
 * features.7.
 *
 * The option one_logit computes z alone, the logit of the second of two classes, and returns
 * (0, z). The softmax of these is (1 - s, s), s the sigmoid of z, and their cross-entropy the
 * binary cross-entropy of z.
 */
#include "resnet_blocks.h"

typedef struct resnet {
    int depth;
    pons_integers layers, block_inplanes;
    int conv1_t_size[3], conv1_t_stride[3];
    bool no_max_pool;
    int shortcut_type, bias_downsample;
    double widen_factor;
    bool use_conv, one_logit;
    int64_t pool;
} resnet;

enum { SHORTCUT_POOL, SHORTCUT_CONV };
enum { BIAS_AUTO, BIAS_NO, BIAS_YES };

static const char *const shortcuts[] = { "a", "b", NULL };
static const char *const biases[] = { "auto", "no", "yes", NULL };

static const pons_option options[] = {
    PONS_CHOICE(resnet, depth, "50", resnet_depth_names,
                "Number of layers; blocks of two convolutions up to 34, bottlenecks from 50."),
    PONS_INTEGERS(resnet, layers, "", 1, 1000, "Blocks of each stage; not given: those of depth.",
                  .count_min = RESNET_STAGES, .count_max = RESNET_STAGES),
    PONS_INTEGERS(resnet, block_inplanes, "64 128 256 512", 1, 65536, "Width of each stage.",
                  .count_min = RESNET_STAGES, .count_max = RESNET_STAGES),
    PONS_AXES(resnet, conv1_t_size, "7", 1, 31, "Extent of the first convolution; odd."),
    PONS_AXES(resnet, conv1_t_stride, "", 1, 31,
              "Stride of the first convolution; not given: 1, or 2 in 2D."),
    PONS_FLAG(resnet, no_max_pool, "no", "Whether the pool after the first convolution is left "
              "out."),
    PONS_CHOICE(resnet, shortcut_type, "b", shortcuts, "Shortcut of a changed shape; a: every "
                "other voxel, and zeros for new channels; b: a convolution."),
    PONS_CHOICE(resnet, bias_downsample, "auto", biases,
                "Whether convolutions of shortcuts add a bias; auto: yes in 3D, no in 2D."),
    PONS_REAL(resnet, widen_factor, "1", 1e-3, 64, "Factor on block_inplanes, rounded down."),
    PONS_FLAG(resnet, use_conv, "no", "Whether the last layer is a convolution, so that a larger "
              "image has a map of logits."),
    PONS_INTEGER(resnet, pool, "7", 1, 64, "Extent of the average pool of use_conv."),
    PONS_FLAG(resnet, one_logit, "no", "Whether two classes have one logit, that of the second; "
              "cross_entropy is then the binary cross-entropy of that logit."),
    PONS_OPTIONS_END
};

/* The context of all builders. */
typedef struct net {
    pons_graph *g;
    const resnet *c;
    const resnet_depth *depth;
    bool flat;
} net;

/* The value along an axis: 'otherwise' if none is given, 1 along the flat axis of a 2D network. */
static int along(const net *n, const int value[3], int axis, int otherwise)
{
    if (n->flat && axis == 0)
        return 1;
    return value[axis] != 0 ? value[axis] : otherwise;
}

/* Part 'features' of MONAI's NetAdapter is the list of the body's modules. */
static const char *part_name(const net *n, const char *name, int index)
{
    return n->c->use_conv ? pons_name(n->g, "features.%d", index) : name;
}

static pons_node *stem(const net *n, pons_node *x)
{
    pons_conv conv = { .out = (int64_t)((double)n->c->block_inplanes.item[0] * n->c->widen_factor),
                       .init = PONS_CONV_HE_FAN_OUT };

    for (int i = 0; i < 3; i++) {
        conv.kernel[i] = along(n, n->c->conv1_t_size, i, 7);
        conv.stride[i] = along(n, n->c->conv1_t_stride, i, n->flat ? 2 : 1);
        conv.padding[i] = conv.kernel[i] / 2;
    }
    x = pons_layer_conv(n->g, part_name(n, "conv1", 0), &conv, x);
    x = pons_relu(n->g, resnet_norm(n->g, part_name(n, "bn1", 1), x));
    return n->c->no_max_pool ? x : resnet_max_pool(n->g, n->flat, x);
}

/* Every stride-th voxel along each axis, with zeros for the channels that x lacks. */
static pons_node *subsample(const net *n, int64_t out, int stride, pons_node *x)
{
    pons_shape shape = pons_shape_of(x);
    int64_t step[] = { 1, n->flat ? 1 : stride, stride, stride, 1 }, none[5] = { 0 };

    if (shape.rank != 5)
        return x;
    for (int i = 0; i < 5; i++)
        shape.extent[i] = (shape.extent[i] + step[i] - 1) / step[i];
    x = pons_crop(n->g, x, none, shape.extent, step);
    return pons_pad(n->g, x, PONS_PAD_ZERO, none,
                    (int64_t[]){ 0, 0, 0, 0, out - shape.extent[4] });
}

static pons_node *shortcut(const net *n, const char *name, int64_t out, int stride, pons_node *x)
{
    pons_graph *g = n->g;
    pons_conv conv = pons_conv_cube(out, 1, stride, 1, n->flat);

    if (stride == 1 && pons_channels_of(x) == out)
        return x;
    if (n->c->shortcut_type == SHORTCUT_POOL)
        return subsample(n, out, stride, x);
    conv.init = PONS_CONV_HE_FAN_OUT;
    conv.bias = n->c->bias_downsample == BIAS_YES
                || (n->c->bias_downsample == BIAS_AUTO && !n->flat);
    x = pons_layer_conv(g, pons_name(g, "%s.downsample.0", name), &conv, x);
    return resnet_norm(g, pons_name(g, "%s.downsample.1", name), x);
}

static pons_node *block(const net *n, const char *name, int64_t width, int stride, pons_node *x)
{
    pons_graph *g = n->g;
    resnet_path path = { .width = width, .stride = stride, .bottleneck = n->depth->bottleneck,
                         .flat = n->flat, .init = PONS_CONV_HE_FAN_OUT };
    int64_t out = path.bottleneck ? RESNET_EXPANSION * width : width;

    for (int i = 0; i < 3; i++) {
        path.conv[i] = pons_name(g, "%s.conv%d", name, i + 1);
        path.norm[i] = pons_name(g, "%s.bn%d", name, i + 1);
    }
    return pons_relu(g, pons_add(g, resnet_path_nodes(g, &path, x),
                                 shortcut(n, name, out, stride, x)));
}

static pons_node *stage(const net *n, int index, pons_node *x)
{
    const resnet *c = n->c;
    const char *name = part_name(n, pons_name(n->g, "layer%d", index + 1), 4 + index);
    int64_t count = c->layers.count > 0 ? c->layers.item[index] : n->depth->layers[index];
    int64_t width = (int64_t)((double)c->block_inplanes.item[index] * c->widen_factor);

    for (int64_t i = 0; i < count; i++)
        x = block(n, pons_name(n->g, "%s.%d", name, (int)i), width, index > 0 && i == 0 ? 2 : 1, x);
    return x;
}

/* Logits at every position of the pool. */
static pons_node *map_of_logits(const net *n, int64_t classes, pons_node *x)
{
    int k = (int)n->c->pool, lone = n->flat ? 1 : k;
    const pons_pool pool = { PONS_POOL_MEAN, { lone, k, k }, { 1, 1, 1 }, .ceil = false };
    const pons_conv conv = { .out = classes, .bias = true };
    const pons_shape last = pons_shape_of(x);

    for (int a = 1; a < 4 && last.rank == 5; a++)
        if (last.extent[a] < pool.kernel[a - 1])
            return pons_graph_fail(n->g, PONS_CONFIG, "pool: found %d, expected at most %d, the "
                                   "extent of the last stage\nhint: a larger patch or a smaller "
                                   "pool", k, (int)last.extent[a]);
    return pons_layer_conv(n->g, "fc", &conv, pons_pooling(n->g, x, &pool));
}

/* A channel of zeros in front of the logit. */
static pons_node *with_zero(pons_graph *g, pons_node *logit)
{
    static const int64_t low[5] = { 0, 0, 0, 0, 1 }, high[5] = { 0 };

    return pons_pad(g, logit, PONS_PAD_ZERO, low, high);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const resnet *c = config;
    const net n = { g, c, &resnet_depths[c->depth], task->flat };
    int classes = c->one_logit ? 1 : task->classes;
    pons_node *x;

    if (c->one_logit && task->classes != 2)
        return pons_option_fail(err, "one_logit", "found %d class%s, expected 2", task->classes,
                                task->classes == 1 ? "" : "es");
    x = stem(&n, pons_input_named(g, inputs, "image"));

    for (int i = 0; i < RESNET_STAGES; i++)
        x = stage(&n, i, x);
    outputs->count = 1;
    x = c->use_conv ? map_of_logits(&n, classes, x)
                    : resnet_logits(g, "fc", classes, resnet_global_mean(g, x));
    outputs->item[0] = c->one_logit ? with_zero(g, x) : x;
    return pons_graph_status(g, err);
}

static pons_status check(const void *config, pons_error *err)
{
    const resnet *c = config;

    for (int i = 0; i < 3; i++)
        if (c->conv1_t_size[i] % 2 == 0)
            return pons_option_fail(err, "conv1_t_size", "found %d, expected odd extents",
                                    c->conv1_t_size[i]);
    for (int i = 0; i < RESNET_STAGES; i++)
        if ((double)c->block_inplanes.item[i] * c->widen_factor < 1)
            return pons_option_fail(err, "widen_factor", "found %g, which leaves stage %d of "
                                    "block_inplanes no channel", c->widen_factor, i + 1);
    return PONS_OK;
}

static const pons_model_operations operations = { .check = check, .build = build };

PONS_MODEL(resnet, "1.0", "residual classifier", options, operations);
