/*
 * residual_unet - nnU-Net's U-Net with a residual encoder (Isensee et al. 2024, arXiv:2404.09556;
 * its class ResidualEncoderUNet, whose arguments and tensor names it keeps).
 *
 *   stem     = act(norm(conv(image)))
 *   block(x) = act(norm(conv(act(norm(conv(x))))) + shortcut(x))
 *   down_i   = n_blocks_per_stage[i] blocks of down_i-1, the first with strides[i]
 *
 * The shortcut is a mean over the stride, then norm(conv1) where the width changes. A block begins
 * as its shortcut: the scale of its second norm is 0 at first. nnunet_blocks.h has the way up,
 * plain_unet.c the weights of the outputs.
 */
#include "nnunet_blocks.h"

typedef struct residual_unet {
    nnunet net; /* first: the shared option rows */
    pons_integers n_blocks_per_stage;
} residual_unet;

static const pons_option options[] = {
    NNUNET_OPTIONS("1"),
    PONS_INTEGERS(residual_unet, n_blocks_per_stage, NULL, 1, 64,
                  "Residual blocks of each stage on the way down; one number stands for all."),
    PONS_OPTIONS_END
};

static const int one[3] = { 1, 1, 1 };

static bool is_one(const int stride[3])
{
    return stride[0] == 1 && stride[1] == 1 && stride[2] == 1;
}

static pons_node *mean_pool(pons_graph *g, const int stride[3], pons_node *x)
{
    pons_pool mean = { .mode = PONS_POOL_MEAN };

    for (int i = 0; i < 3; i++)
        mean.kernel[i] = mean.stride[i] = stride[i];
    return pons_pooling(g, x, &mean);
}

static pons_node *shortcut(pons_graph *g, const nnunet *c, const char *name, int64_t out,
                           const int stride[3], pons_node *x)
{
    const pons_conv conv = { .out = out, .init = PONS_CONV_HE };
    int parts = 0;

    if (!is_one(stride)) {
        x = mean_pool(g, stride, x);
        parts = 1;
    }
    if (pons_channels_of(x) == out)
        return x;
    return nnunet_convolve(g, c, pons_name(g, "%s.skip.%d", name, parts), &conv, 0, x);
}

static pons_node *block(pons_graph *g, const nnunet *c, const char *name, int stage,
                        const int stride[3], pons_node *x)
{
    const char *first = pons_name(g, "%s.conv1", name), *second = pons_name(g, "%s.conv2", name);
    pons_conv conv = nnunet_conv(c, stage, stride);
    pons_node *y = nnunet_convolve(g, c, first, &conv, c->dropout, x);

    y = nnunet_act(g, c, first, y);
    conv = nnunet_conv(c, stage, one);
    /* The first leaf of a name has the initial value. */
    pons_vector_parameter(g, second, "norm.weight", PONS_ROLE_NORM_SCALE, conv.out, 0);
    y = nnunet_convolve(g, c, second, &conv, 0, y);
    x = shortcut(g, c, name, conv.out, stride, x);
    return nnunet_act(g, c, pons_name(g, "%s.nonlin2", name), pons_add(g, y, x));
}

static pons_node *stage_of(pons_graph *g, const residual_unet *c, int stage, pons_node *x)
{
    for (int i = 0; i < nnunet_count(&c->n_blocks_per_stage, stage); i++)
        x = block(g, &c->net, pons_name(g, "encoder.stages.%d.blocks.%d", stage, i), stage,
                  i == 0 ? c->net.strides.item[stage] : one, x);
    return x;
}

static pons_status check(const void *config, pons_error *err)
{
    const residual_unet *c = config;

    if (nnunet_check(&c->net, err) != PONS_OK)
        return err->status;
    return nnunet_check_counts("n_blocks_per_stage", c->n_blocks_per_stage.count,
                               c->net.features_per_stage.count, err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const residual_unet *c = config;
    pons_node *features[NNUNET_STAGES_MAX], *x = pons_input_named(g, inputs, "image");

    x = nnunet_stack(g, &c->net, "encoder.stem", 0, 1, one, x);
    for (int i = 0; i < c->net.features_per_stage.count; i++)
        features[i] = x = stage_of(g, c, i, x);
    nnunet_decode(g, &c->net, task->classes, features, outputs);
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    const residual_unet *c = config;

    return pons_strides_divisor(&c->net.strides, product, err);
}

static const pons_model_operations operations = {
    .check = check, .build = build, .divisor = divisor
};

PONS_MODEL(residual_unet, "1.0", "nnU-Net's U-Net with a residual encoder", options, operations);
