/*
 * attention_unet - a U-Net whose skips pass a gate (Oktay et al. 2018, arXiv:1804.03999; MONAI's
 * class AttentionUnet, whose arguments and tensor names it keeps).
 *
 *   block(x)   = relu(norm(conv(relu(norm(conv(x))))))          the first convolution strided
 *   gate(u, x) = x sigmoid(norm(conv1(relu(norm(conv1(u)) + norm(conv1(x))))))
 *   level_i(x) = merge(concatenate(gate(u, x), u)),  u = up(level_i+1(block(x)))
 */
#include <pons/nn.h>

typedef struct attention_unet {
    pons_integers channels;
    pons_triples strides;
    int kernel_size[3], up_kernel_size[3];
    double dropout;
} attention_unet;

static const pons_option options[] = {
    PONS_INTEGERS(attention_unet, channels, NULL, 1, 65536,
                  "Features of each level, the top one first.", .count_min = 2),
    PONS_TRIPLES(attention_unet, strides, NULL, 1, 64,
                 "Strides between levels, one fewer than channels."),
    PONS_AXES(attention_unet, kernel_size, "3", 1, 31, "Extent of the convolutions; odd."),
    PONS_AXES(attention_unet, up_kernel_size, "3", 1, 31,
              "Extent of the transposed convolutions; odd."),
    PONS_REAL(attention_unet, dropout, "0", 0, 1, "Probability that an element is zeroed."),
    PONS_OPTIONS_END
};

/* The context of all builders. */
typedef struct net {
    pons_graph *g;
    const attention_unet *c;
    bool flat;
} net;

static const int one[3] = { 1, 1, 1 };
static const pons_norm batch = { PONS_NORM_BATCH, .affine = true };

/* relu(dropout(norm(conv(x)))), transposed if 'up'. The stride alone changes the extent. */
static pons_node *convolve(const net *n, const char *name, int64_t out, const int *stride, bool up,
                           pons_node *x)
{
    pons_graph *g = n->g;
    const int *kernel = up ? n->c->up_kernel_size : n->c->kernel_size;
    pons_conv conv = { .out = out, .bias = true, .transposed = up };

    for (int i = 0; i < 3; i++) {
        conv.kernel[i] = kernel[i];
        conv.stride[i] = stride[i];
        conv.padding[i] = (kernel[i] - 1) / 2;
        conv.output_padding[i] = stride[i] - 1;
    }
    x = pons_layer_conv(g, pons_name(g, "%s.conv", name), &conv, x);
    x = pons_layer_norm(g, pons_name(g, "%s.adn.N", name), &batch, x);
    return pons_relu(g, pons_dropout(g, x, n->c->dropout, pons_name(g, "%s.adn.D", name)));
}

static pons_node *block(const net *n, const char *name, int64_t out, const int *stride,
                        pons_node *x)
{
    x = convolve(n, pons_name(n->g, "%s.conv.0", name), out, stride, false, x);
    return convolve(n, pons_name(n->g, "%s.conv.1", name), out, one, false, x);
}

/* norm(conv1(x)): parameters NAME.0.conv and NAME.1. */
static pons_node *project(pons_graph *g, const char *name, int64_t out, pons_node *x)
{
    const pons_conv conv = { .out = out, .bias = true };

    x = pons_layer_conv(g, pons_name(g, "%s.0.conv", name), &conv, x);
    return pons_layer_norm(g, pons_name(g, "%s.1", name), &batch, x);
}

static pons_node *gate(pons_graph *g, const char *name, pons_node *u, pons_node *x)
{
    int64_t width = pons_channels_of(x) / 2;
    pons_node *both = pons_add(g, project(g, pons_name(g, "%s.W_g", name), width, u),
                               project(g, pons_name(g, "%s.W_x", name), width, x));
    pons_node *psi = project(g, pons_name(g, "%s.psi", name), 1, pons_relu(g, both));

    return pons_mul(g, x, pons_sigmoid(g, psi));
}

/* One convolution with an instance norm, dropout and one slope. */
static pons_node *merge(const net *n, const char *name, int64_t out, pons_node *x)
{
    pons_graph *g = n->g;
    pons_conv conv = pons_conv_cube(out, 3, 1, 1, n->flat);

    conv.bias = true;
    x = pons_layer_conv(g, pons_name(g, "%s.conv", name), &conv, x);
    x = pons_layer_norm(g, name, &(pons_norm){ PONS_NORM_INSTANCE }, x);
    x = pons_dropout(g, x, n->c->dropout, pons_name(g, "%s.adn.D", name));
    return pons_layer_act(g, pons_name(g, "%s.adn.A", name), PONS_ACT_PRELU, x);
}

/* Level 'i' and all below it: the features of the level, from x of its extent. */
static pons_node *level(const net *n, const char *name, int i, pons_node *x)
{
    pons_graph *g = n->g;
    const int *stride = n->c->strides.item[i];
    bool lowest = i == n->c->strides.count - 1;
    const char *below = pons_name(g, lowest ? "%s.submodule" : "%s.submodule.0", name);
    pons_node *y = block(n, below, n->c->channels.item[i + 1], stride, x);

    if (!lowest)
        y = level(n, pons_name(g, "%s.submodule.1", name), i + 1, y);
    y = convolve(n, pons_name(g, "%s.upconv.up", name), n->c->channels.item[i], stride, true, y);
    x = gate(g, pons_name(g, "%s.attention", name), y, x);
    return merge(n, pons_name(g, "%s.merge", name), n->c->channels.item[i],
                 pons_concatenate(g, 2, (pons_node *[]){ x, y }, 4));
}

static pons_status check(const void *config, pons_error *err)
{
    const attention_unet *c = config;

    if (c->strides.count != c->channels.count - 1)
        return pons_option_fail(err, "strides", "found %d items, expected %d, one fewer than "
                                "'channels'", c->strides.count, c->channels.count - 1);
    for (int i = 0; i < c->channels.count - 1; i++)
        if (c->channels.item[i] < 2)
            return pons_option_fail(err, "channels", "found 1 in level %d, expected at least 2: "
                                    "a gate has half as many", i);
    for (int i = 0; i < 3; i++) {
        if (c->kernel_size[i] % 2 == 0)
            return pons_option_fail(err, "kernel_size", "found %d, expected odd values",
                                    c->kernel_size[i]);
        if (c->up_kernel_size[i] % 2 == 0)
            return pons_option_fail(err, "up_kernel_size", "found %d, expected odd values",
                                    c->up_kernel_size[i]);
    }
    return PONS_OK;
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const net n = { g, config, task->flat };
    const pons_conv logits = { .out = task->classes, .bias = true };
    pons_node *x = block(&n, "model.0", n.c->channels.item[0], one,
                         pons_input_named(g, inputs, "image"));

    outputs->count = 1;
    outputs->item[0] = pons_layer_conv(g, "model.2.conv", &logits, level(&n, "model.1", 0, x));
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    const attention_unet *c = config;

    return pons_strides_divisor(&c->strides, product, err);
}

static const pons_model_operations operations = {
    .check = check, .build = build, .divisor = divisor
};

PONS_MODEL(attention_unet, "1.0", "U-Net with gated skips", options, operations);
