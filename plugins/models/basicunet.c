/*
 * basicunet - a U-Net of two convolutions a level with max pooling (Falk et al. 2019,
 * doi:10.1038/s41592-018-0261-2; MONAI's class BasicUNet, whose arguments and tensor names it
 * keeps).
 *
 *   block(x) = layer(layer(x)),  layer(x) = act(dropout(norm(conv(x))))
 *   down_i   = block(pool(down_i-1)),  down_0 = block(image)
 *   up_i     = block(concatenate(down_i, pad(upsample(up_i+1))))
 *
 * Pooling halves an extent, rounded down. Where it was odd the last voxels are repeated once after
 * upsampling.
 */
#include <pons/nn.h>

#include "upsample.h"

typedef struct basicunet {
    pons_integers features;
    int act, norm, upsample;
    double negative_slope, dropout;
    int64_t num_groups;
    bool affine, bias;
} basicunet;

enum { LEVELS = 5 };

static const pons_option options[] = {
    PONS_INTEGERS(basicunet, features, "32 32 64 128 256 32", 1, 65536,
                  "Features of the five levels, the top one first, and of the last block.",
                  .count_min = LEVELS + 1, .count_max = LEVELS + 1),
    PONS_CHOICE(basicunet, act, "leakyrelu", pons_act_names, "Activation; prelu has one slope."),
    PONS_REAL(basicunet, negative_slope, "0.1", 0, 1, "Slope of act = leakyrelu below 0."),
    PONS_CHOICE(basicunet, norm, "instance", pons_norm_names, "Normalisation."),
    PONS_FLAG(basicunet, affine, "yes", "Whether the normalisation scales and shifts."),
    PONS_INTEGER(basicunet, num_groups, "8", 1, 4096, "Groups of channels of norm = group."),
    PONS_FLAG(basicunet, bias, "yes", "Whether convolutions of blocks add a bias."),
    PONS_REAL(basicunet, dropout, "0", 0, 1, "Probability that an element is zeroed."),
    PONS_CHOICE(basicunet, upsample, "deconv", upsample_names,
                "Linear interpolation, a transposed convolution, or channels moved into space."),
    PONS_OPTIONS_END
};

/* The context of all builders. */
typedef struct net {
    pons_graph *g;
    const basicunet *c;
    bool flat;
} net;

static pons_node *layer(const net *n, const char *name, int64_t out, pons_node *x)
{
    pons_graph *g = n->g;
    const basicunet *c = n->c;
    const pons_norm norm = { .kind = c->norm, .affine = c->affine, .groups = (int)c->num_groups };
    pons_conv conv = pons_conv_cube(out, 3, 1, 1, n->flat);

    conv.bias = c->bias;
    x = pons_layer_conv(g, pons_name(g, "%s.conv", name), &conv, x);
    x = pons_layer_norm(g, pons_name(g, "%s.adn.N", name), &norm, x);
    x = pons_dropout(g, x, c->dropout, pons_name(g, "%s.adn.D", name));
    if (c->act == PONS_ACT_LEAKYRELU)
        return pons_leaky_relu(g, x, c->negative_slope);
    return pons_layer_act(g, pons_name(g, "%s.adn.A", name), c->act, x);
}

static pons_node *block(const net *n, const char *name, int64_t out, pons_node *x)
{
    for (int i = 0; i < 2; i++)
        x = layer(n, pons_name(n->g, "%s.conv_%d", name, i), out, x);
    return x;
}

static pons_node *down(const net *n, int level, pons_node *x)
{
    pons_pool max = { PONS_POOL_MAX, PONS_CUBE(2), PONS_CUBE(2), PONS_CUBE(0), PONS_CUBE(0),
                      false };

    if (n->flat)
        max.kernel[0] = max.stride[0] = 1;
    return block(n, pons_name(n->g, "down_%d.convs", level), n->c->features.item[level],
                 pons_pooling(n->g, x, &max));
}

/* Repeat the last voxels of the axes on which x is shorter than 'like'. */
static pons_node *pad(pons_graph *g, pons_node *x, const pons_node *like)
{
    const pons_shape from = pons_shape_of(x), to = pons_shape_of(like);
    int64_t low[5] = { 0 }, high[5] = { 0 };

    for (int i = 1; i < 4; i++)
        high[i] = to.extent[i] - from.extent[i];
    return pons_pad(g, x, PONS_PAD_EDGE, low, high);
}

/* Upsampling halves the channels, but not those of the top. */
static pons_node *up(const net *n, int level, pons_node *x, pons_node *skip)
{
    pons_graph *g = n->g;
    const int64_t *features = n->c->features.item, width = pons_channels_of(x);
    const char *name = pons_name(g, "upcat_%d", level);
    const upsampling twice = { n->c->upsample, level > 1 ? width / 2 : width, .align_corners = true,
                               .flat = n->flat };

    x = pad(g, upsample(g, pons_name(g, "%s.upsample", name), &twice, x), skip);
    return block(n, pons_name(g, "%s.convs", name), features[level > 1 ? level - 1 : LEVELS],
                 pons_concatenate(g, 2, (pons_node *[]){ skip, x }, 4));
}

static pons_status check(const void *config, pons_error *err)
{
    const basicunet *c = config;

    for (int i = 0; i <= LEVELS; i++)
        if (c->norm == PONS_NORM_GROUP && c->features.item[i] % c->num_groups != 0)
            return pons_option_fail(err, "features", "found %d in item %d, expected a multiple of "
                                    "num_groups, %d", (int)c->features.item[i], i,
                                    (int)c->num_groups);
    for (int i = 2; i < LEVELS; i++)
        if (c->features.item[i] < 2)
            return pons_option_fail(err, "features", "found 1 in item %d, expected at least 2: "
                                    "upsampling halves it", i);
    return PONS_OK;
}

static pons_status check_extent(const net *n, pons_shape image, pons_error *err)
{
    for (int i = n->flat ? 2 : 1; i < 4; i++)
        if (image.extent[i] < 1 << (LEVELS - 1))
            return pons_fail(err, PONS_CONFIG, "basicunet: the patch has an extent of %d, expected "
                             "at least %d", (int)image.extent[i], 1 << (LEVELS - 1));
    return PONS_OK;
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const net n = { g, config, task->flat };
    const pons_conv logits = { .out = task->classes, .bias = true };
    pons_node *at[LEVELS], *x = pons_input_named(g, inputs, "image");

    if (pons_graph_status(g, err) != PONS_OK || check_extent(&n, pons_shape_of(x), err) != PONS_OK)
        return err->status;
    at[0] = x = block(&n, "conv_0", n.c->features.item[0], x);
    for (int i = 1; i < LEVELS; i++)
        at[i] = x = down(&n, i, x);
    for (int i = LEVELS - 1; i > 0; i--)
        x = up(&n, i, x, at[i - 1]);
    outputs->count = 1;
    outputs->item[0] = pons_layer_conv(g, "final_conv", &logits, x);
    return pons_graph_status(g, err);
}

static const pons_model_operations operations = { .check = check, .build = build };

PONS_MODEL(basicunet, "1.0", "U-Net of two convolutions a level with max pooling", options,
           operations);
