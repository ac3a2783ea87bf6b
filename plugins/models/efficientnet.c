/*
 * efficientnet - classifiers of inverted residual blocks (Tan and Le 2019, arXiv:1905.11946;
 * MONAI's EfficientNetBN in 2D and 3D, whose tensor names it keeps).
 *
 *   stem(x)  = silu(norm(conv(x)))
 *   block(x) = norm(conv(excite(silu(norm(depthwise(silu(norm(conv(x)))))))), plus x if it fits
 *   excite(x) = x sigmoid(conv(silu(conv(mean of x))))
 *   logits   = fc(dropout(mean of silu(norm(conv(blocks(stem(x))))))),  [N, 1, 1, 1, classes]
 *
 * Convolutions are padded as in MONAI, so that an image of image_size has extents n / stride,
 * rounded up. An odd number of padded voxels has the larger part behind.
 */
#include "resnet_blocks.h"

#include <math.h>

#define STAGES 7

typedef struct efficientnet {
    int model_name;
    int64_t image_size;
    pons_reals dropout_rate;
    double drop_connect_rate;
} efficientnet;

static const char *const model_names[] = {
    "efficientnet-b0", "efficientnet-b1", "efficientnet-b2", "efficientnet-b3", "efficientnet-b4",
    "efficientnet-b5", "efficientnet-b6", "efficientnet-b7", "efficientnet-b8", "efficientnet-l2",
    NULL
};

/* A row for each word of model_names. */
static const struct scaling {
    double width, depth;               /* factors on channels and on the blocks of a stage        */
    int image_size;
    double dropout_rate;
} scalings[] = {
    { 1.0, 1.0, 224, 0.2 }, { 1.0, 1.1, 240, 0.2 }, { 1.1, 1.2, 260, 0.3 }, { 1.2, 1.4, 300, 0.3 },
    { 1.4, 1.8, 380, 0.4 }, { 1.6, 2.2, 456, 0.4 }, { 1.8, 2.6, 528, 0.5 }, { 2.0, 3.1, 600, 0.5 },
    { 2.2, 3.6, 672, 0.5 }, { 4.3, 5.3, 800, 0.5 },
};

static const struct stage {
    int blocks, kernel, stride, expansion, in, out;
} stages[STAGES] = {
    { 1, 3, 1, 1, 32, 16 }, { 2, 3, 2, 6, 16, 24 }, { 2, 5, 2, 6, 24, 40 }, { 3, 3, 2, 6, 40, 80 },
    { 3, 5, 1, 6, 80, 112 }, { 4, 5, 2, 6, 112, 192 }, { 1, 3, 1, 6, 192, 320 },
};

/* Channels of the first and last convolution, and those of which every width is a multiple. */
enum { STEM = 32, HEAD = 1280, WIDTH_DIVISOR = 8 };
/* Ratio of a block's input channels to those between the convolutions of its excitation. */
enum { SQUEEZE = 4 };

static const pons_option options[] = {
    PONS_CHOICE(efficientnet, model_name, "efficientnet-b0", model_names,
                "Number of channels and of blocks, from b0 to b8 and l2."),
    PONS_INTEGER(efficientnet, image_size, "0", 0, 65536,
                 "Extent of the image for which convolutions are padded; 0: that of the model, 224 "
                 "in b0."),
    PONS_REALS(efficientnet, dropout_rate, "", 0, 0.999,
               "Share of the last features that training sets to 0; not given: that of the model, "
               "0.2 in b0.", .count_max = 1),
    PONS_REAL(efficientnet, drop_connect_rate, "0.2", 0, 0.999,
              "Probability with which training leaves the last block out of a sample; the first "
              "has 0, those between in proportion."),
    PONS_OPTIONS_END
};

/* The context of all builders. 'size' is the extent of the image that the padding is for. */
typedef struct net {
    pons_graph *g;
    const efficientnet *c;
    const struct scaling *scaling;
    bool flat;
    int size;
    int at, blocks;                    /* the block in work, and their number                     */
} net;

/* The scaled number of channels; rounding takes away a tenth at most. */
static int64_t width_of(const net *n, int channels)
{
    double exact = channels * n->scaling->width;
    int64_t rounded = (int64_t)(exact + WIDTH_DIVISOR / 2) / WIDTH_DIVISOR * WIDTH_DIVISOR;

    if (rounded < WIDTH_DIVISOR)
        rounded = WIDTH_DIVISOR;
    return (double)rounded < 0.9 * exact ? rounded + WIDTH_DIVISOR : rounded;
}

static int blocks_of(const net *n, const struct stage *s)
{
    return (int)ceil(n->scaling->depth * s->blocks);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static pons_node *silu(pons_graph *g, pons_node *x)
{
    return pons_mul(g, x, pons_sigmoid(g, x));
}

/* A batch norm whose running statistics move by 0.01 and whose variance is at least 0.001. */
static pons_node *norm(const net *n, const char *name, pons_node *x)
{
    pons_graph *g = n->g;
    int64_t count = pons_channels_of(x);
    pons_shape shape = pons_shape_make(1, &count);
    pons_node *scale = pons_vector_parameter(g, name, "weight", PONS_ROLE_NORM_SCALE, count, 1);
    pons_node *shift = pons_vector_parameter(g, name, "bias", PONS_ROLE_NORM_SHIFT, count, 0);
    pons_node *mean = pons_state_leaf(g, pons_name(g, "%s.running_mean", name), shape, 0);
    pons_node *variance = pons_state_leaf(g, pons_name(g, "%s.running_var", name), shape, 1);

    return pons_batch_norm(g, x, scale, shift, mean, variance, 0.01, 1e-3);
}

/* A convolution without a bias, padded for an image of n->size, which then has its new extent. */
static pons_node *conv(net *n, const char *name, pons_conv c, pons_node *x)
{
    int kernel = c.kernel[2], stride = c.stride[2], out = (n->size + stride - 1) / stride;
    int padded = (out - 1) * stride + kernel > n->size ? (out - 1) * stride + kernel - n->size : 0;
    int64_t low[5] = { 0 }, high[5] = { 0 };
    bool even = padded % 2 == 0;
    const pons_shape shape = pons_shape_of(x);

    for (int axis = n->flat ? 1 : 0; axis < 3; axis++) {
        if (shape.rank == 5 && shape.extent[1 + axis] + padded < kernel)
            return pons_graph_fail(n->g, PONS_CONFIG, "'%s' finds %d voxels along an axis, with "
                                   "its padding fewer than its kernel of %d\nhint: a larger patch, "
                                   "or a smaller image_size, from which the padding follows", name,
                                   (int)shape.extent[1 + axis], kernel);
        c.padding[axis] = even ? padded / 2 : 0;
        low[1 + axis] = padded / 2;
        high[1 + axis] = padded - padded / 2;
    }
    c.init = PONS_CONV_HE_FAN_OUT;
    n->size = out;
    return pons_layer_conv(n->g, name, &c,
                           even ? x : pons_pad(n->g, x, PONS_PAD_ZERO, low, high));
}

static pons_node *pointwise(net *n, const char *name, int64_t out, pons_node *x)
{
    return conv(n, name, pons_conv_cube(out, 1, 1, 1, n->flat), x);
}

/* A layer on the mean of all voxels. */
static pons_node *dense(const net *n, const char *name, int64_t out, pons_node *x)
{
    const pons_conv c = { .out = out, .bias = true, .init = PONS_CONV_HE_FAN_OUT };

    pons_vector_parameter(n->g, name, "bias", PONS_ROLE_BIAS, out, 0);
    return pons_layer_conv(n->g, name, &c, x);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static pons_node *excite(const net *n, const char *name, int64_t squeezed, pons_node *x)
{
    pons_graph *g = n->g;
    pons_node *m = resnet_global_mean(g, x);

    m = silu(g, dense(n, pons_name(g, "%s._se_reduce", name), squeezed > 0 ? squeezed : 1, m));
    m = dense(n, pons_name(g, "%s._se_expand", name), pons_channels_of(x), m);
    return pons_mul(g, x, pons_sigmoid(g, m));
}

/* Leave the block out of some samples of a training and scale the others. */
static pons_node *drop_connect(const net *n, const char *name, pons_node *x)
{
    pons_graph *g = n->g;
    double rate = n->c->drop_connect_rate * n->at / n->blocks;
    pons_node *ones;

    if (rate <= 0 || !pons_graph_training(g))
        return x;
    ones = pons_add_scalar(g, pons_scale(g, pons_iota(g, 5, 0, pons_shape_of(x).extent[0]), 0), 1);
    return pons_mul(g, x, pons_dropout(g, ones, rate, pons_name(g, "%s.drop_connect", name)));
}

static pons_node *block(net *n, const char *name, const struct stage *s, bool first, pons_node *x)
{
    pons_graph *g = n->g;
    int64_t in = pons_channels_of(x), out = width_of(n, s->out);
    pons_conv depthwise = pons_conv_cube(in * s->expansion, s->kernel, first ? s->stride : 1, 1,
                                         n->flat);
    pons_node *y = x;

    if (s->expansion > 1) {
        y = pointwise(n, pons_name(g, "%s._expand_conv", name), in * s->expansion, y);
        y = silu(g, norm(n, pons_name(g, "%s._bn0", name), y));
    }
    depthwise.groups = (int)depthwise.out;
    y = conv(n, pons_name(g, "%s._depthwise_conv", name), depthwise, y);
    y = silu(g, norm(n, pons_name(g, "%s._bn1", name), y));
    y = excite(n, name, in / SQUEEZE, y);
    y = pointwise(n, pons_name(g, "%s._project_conv", name), out, y);
    y = norm(n, pons_name(g, "%s._bn2", name), y);
    return (first && s->stride > 1) || in != out ? y : pons_add(g, drop_connect(n, name, y), x);
}

static pons_node *blocks(net *n, pons_node *x)
{
    for (int i = 0; i < STAGES; i++)
        n->blocks += blocks_of(n, &stages[i]);
    for (int i = 0; i < STAGES; i++)
        for (int k = 0; k < blocks_of(n, &stages[i]); k++, n->at++)
            x = block(n, pons_name(n->g, "_blocks.%d.%d", i, n->at), &stages[i], k == 0, x);
    return x;
}

/* The fully connected layer begins with U(-b, b), b = 1 / sqrt(classes), and a bias of 0. */
static pons_node *logits(const net *n, int64_t classes, pons_node *x)
{
    int64_t extent[] = { classes, pons_channels_of(x) };

    pons_parameter_leaf(n->g, "_fc.weight", PONS_ROLE_WEIGHT, pons_shape_make(2, extent),
                        (pons_init){ PONS_INIT_UNIFORM, 1 / sqrt((double)classes) });
    pons_vector_parameter(n->g, "_fc", "bias", PONS_ROLE_BIAS, classes, 0);
    return resnet_logits(n->g, "_fc", classes, x);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const efficientnet *c = config;
    net n = { .g = g, .c = c, .scaling = &scalings[c->model_name], .flat = task->flat };
    double dropout = c->dropout_rate.count > 0 ? c->dropout_rate.item[0] : n.scaling->dropout_rate;
    pons_node *x = pons_input_named(g, inputs, "image");

    n.size = c->image_size > 0 ? (int)c->image_size : n.scaling->image_size;
    x = conv(&n, "_conv_stem", pons_conv_cube(width_of(&n, STEM), 3, 2, 1, n.flat), x);
    x = blocks(&n, silu(g, norm(&n, "_bn0", x)));
    x = pointwise(&n, "_conv_head", width_of(&n, HEAD), x);
    x = resnet_global_mean(g, silu(g, norm(&n, "_bn1", x)));
    x = dropout > 0 ? pons_dropout(g, x, dropout, "_dropout") : x;
    outputs->count = 1;
    outputs->item[0] = logits(&n, task->classes, x);
    return pons_graph_status(g, err);
}

static const pons_model_operations operations = { .build = build };

PONS_MODEL(efficientnet, "1.0", "classifier of inverted residual blocks", options, operations);
