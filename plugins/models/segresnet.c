/*
 * segresnet - residual blocks down and up, without the autoencoder branch (Myronenko 2018,
 * arXiv:1810.11654; MONAI's class SegResNet, whose arguments and tensor names it keeps).
 *
 * Level i has init_filters 2^i features on half the extent of the one above:
 *
 *   block(x) = x + conv(act(norm(conv(act(norm(x))))))
 *   down_i   = blocks_down[i] blocks of conv(down_i-1), stride 2
 *   up_i     = blocks_up blocks of upsample(conv1(up_i+1)) + down_i
 *   logits   = conv1(act(norm(up_0))) + bias
 */
#include <pons/nn.h>

#include "upsample.h"

typedef struct segresnet {
    int64_t init_filters, num_groups;
    double dropout_prob;
    int act, norm, upsample_mode;
    bool use_conv_final;
    pons_integers blocks_down, blocks_up;
} segresnet;

enum { LEVELS_MAX = 12 };

static const char *const norm_names[] = { "group", "instance", "batch", NULL };
static const pons_norm_kind norm_kinds[] = { PONS_NORM_GROUP, PONS_NORM_INSTANCE, PONS_NORM_BATCH };

static const pons_option options[] = {
    PONS_INTEGER(segresnet, init_filters, "8", 1, 4096, "Features of the first level."),
    PONS_REAL(segresnet, dropout_prob, "0", 0, 1,
              "Probability that a channel of the first is zero."),
    PONS_CHOICE(segresnet, act, "relu", pons_act_names,
                "Activation; leakyrelu 0.01, prelu one slope."),
    PONS_CHOICE(segresnet, norm, "group", norm_names, "Normalisation; instance has no parameters."),
    PONS_INTEGER(segresnet, num_groups, "8", 1, 4096, "Groups of channels of norm = group."),
    PONS_FLAG(segresnet, use_conv_final, "yes", "Whether a convolution makes the classes."),
    PONS_INTEGERS(segresnet, blocks_down, "1 2 2 4", 0, 64,
                  "Blocks of each level on the way down.", .count_max = LEVELS_MAX),
    PONS_INTEGERS(segresnet, blocks_up, "1 1 1", 0, 64, "Blocks of each level on the way up."),
    PONS_CHOICE(segresnet, upsample_mode, "nontrainable", upsample_names,
                "Linear interpolation, a transposed convolution, or channels moved into space."),
    PONS_OPTIONS_END
};

/* The context of all builders. */
typedef struct net {
    pons_graph *g;
    const segresnet *c;
    bool flat;
} net;

static pons_node *normalise(const net *n, const char *name, pons_node *x)
{
    const pons_norm_kind kind = norm_kinds[n->c->norm];
    const pons_norm norm = { .kind = kind, .affine = kind != PONS_NORM_INSTANCE,
                             .groups = (int)n->c->num_groups };

    return pons_layer_norm(n->g, name, &norm, x);
}

/* A convolution. In a flat network its kernel and stride are 1 along the flat axis. */
typedef struct affine {
    int64_t out;
    int kernel, stride;
    bool bias;
} affine;

static pons_node *convolve(const net *n, const char *name, affine a, pons_node *x)
{
    pons_conv how = pons_conv_cube(a.out, a.kernel, a.stride, 1, n->flat);

    how.bias = a.bias;
    return pons_layer_conv(n->g, name, &how, x);
}

static pons_node *block(const net *n, const char *name, pons_node *x)
{
    pons_graph *g = n->g;
    const char *act = pons_name(g, "%s.act", name);
    affine same = { pons_channels_of(x), 3, 1, false };
    pons_node *y = x;

    for (int i = 1; i <= 2; i++) {
        y = normalise(n, pons_name(g, "%s.norm%d", name, i), y);
        y = pons_layer_act(g, act, n->c->act, y);
        y = convolve(n, pons_name(g, "%s.conv%d.conv", name, i), same, y);
    }
    return pons_add(g, y, x);
}

static pons_node *enlarge(const net *n, const char *name, pons_node *x)
{
    const upsampling twice = { n->c->upsample_mode, pons_channels_of(x) / 2, .flat = n->flat };
    affine half = { twice.out, 1, 1, false };

    x = convolve(n, pons_name(n->g, "%s.0.conv", name), half, x);
    return upsample(n->g, pons_name(n->g, "%s.1", name), &twice, x);
}

/* ---- the network ----------------------------------------------------------------------------- */

static pons_node *encode(const net *n, pons_node *x, pons_node *kept[LEVELS_MAX])
{
    pons_graph *g = n->g;
    const pons_integers *blocks = &n->c->blocks_down;

    x = convolve(n, "convInit.conv", (affine){ n->c->init_filters, 3, 1, false }, x);
    x = pons_dropout_channels(g, x, n->c->dropout_prob, "dropout");
    for (int i = 0; i < blocks->count; i++) {
        affine wider = { n->c->init_filters << i, 3, 2, false };
        if (i > 0)
            x = convolve(n, pons_name(g, "down_layers.%d.0.conv", i), wider, x);
        for (int j = 0; j < (int)blocks->item[i]; j++)
            x = block(n, pons_name(g, "down_layers.%d.%d", i, j + 1), x);
        kept[i] = x;
    }
    return x;
}

static pons_node *decode(const net *n, pons_node *x, pons_node *const kept[LEVELS_MAX])
{
    pons_graph *g = n->g;
    const pons_integers *blocks = &n->c->blocks_up;

    for (int i = 0; i < blocks->count; i++) {
        x = enlarge(n, pons_name(g, "up_samples.%d", i), x);
        x = pons_add(g, x, kept[blocks->count - 1 - i]);
        for (int j = 0; j < (int)blocks->item[i]; j++)
            x = block(n, pons_name(g, "up_layers.%d.%d", i, j), x);
    }
    return x;
}

static pons_status check(const void *config, pons_error *err)
{
    const segresnet *c = config;

    if (c->blocks_up.count != c->blocks_down.count - 1)
        return pons_option_fail(err, "blocks_up", "found %d items, expected %d, one fewer than "
                                "'blocks_down'", c->blocks_up.count, c->blocks_down.count - 1);
    if (norm_kinds[c->norm] == PONS_NORM_GROUP && c->init_filters % c->num_groups != 0)
        return pons_option_fail(err, "init_filters", "found %d, expected a multiple of num_groups, "
                                "%d", (int)c->init_filters, (int)c->num_groups);
    return PONS_OK;
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const net n = { g, config, task->flat };
    pons_node *kept[LEVELS_MAX], *x;

    x = encode(&n, pons_input_named(g, inputs, "image"), kept);
    x = decode(&n, x, kept);
    if (n.c->use_conv_final) {
        x = pons_layer_act(g, "act_mod", n.c->act, normalise(&n, "conv_final.0", x));
        x = convolve(&n, "conv_final.2.conv", (affine){ task->classes, 1, 1, true }, x);
    }
    outputs->count = 1;
    outputs->item[0] = x;
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    const segresnet *c = config;

    for (int axis = 0; axis < 3; axis++)
        product[axis] = 1 << (c->blocks_down.count - 1);
    return PONS_OK;
}

static const pons_model_operations operations = {
    .check = check, .build = build, .divisor = divisor
};

PONS_MODEL(segresnet, "1.0", "residual encoder and decoder with group norm", options, operations);
