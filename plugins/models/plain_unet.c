/*
 * plain_unet - nnU-Net's U-Net (Isensee et al. 2021, doi:10.1038/s41592-020-01008-z; its class
 * PlainConvUNet, whose arguments and tensor names it keeps).
 *
 *   block(x) = act(norm(conv(x)))
 *   down_i   = n_conv_per_stage[i] blocks of down_i-1, the first with strides[i]
 *
 * nnunet_blocks.h has the way up. With deep_supervision each of its stages has logits on its own
 * extent, and the target is shrunk to it. nnU-Net weighs them [loss] heads = 1, 1/2, 1/4 and so on,
 * the last 0, divided by their sum.
 */
#include "nnunet_blocks.h"

typedef struct plain_unet {
    nnunet net; /* first: the shared option rows */
    pons_integers n_conv_per_stage;
} plain_unet;

static const pons_option options[] = {
    NNUNET_OPTIONS("2"),
    PONS_INTEGERS(plain_unet, n_conv_per_stage, "2", 1, 64,
                  "Convolutions of each stage on the way down; one number stands for all."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const plain_unet *c = config;

    if (nnunet_check(&c->net, err) != PONS_OK)
        return err->status;
    return nnunet_check_counts("n_conv_per_stage", c->n_conv_per_stage.count,
                               c->net.features_per_stage.count, err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const plain_unet *c = config;
    pons_node *features[NNUNET_STAGES_MAX], *x = pons_input_named(g, inputs, "image");

    for (int i = 0; i < c->net.features_per_stage.count; i++)
        features[i] = x = nnunet_stack(g, &c->net, pons_name(g, "encoder.stages.%d.0", i), i,
                                       nnunet_count(&c->n_conv_per_stage, i),
                                       c->net.strides.item[i], x);
    nnunet_decode(g, &c->net, task->classes, features, outputs);
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    const plain_unet *c = config;

    return pons_strides_divisor(&c->net.strides, product, err);
}

static const pons_model_operations operations = {
    .check = check, .build = build, .divisor = divisor
};

PONS_MODEL(plain_unet, "1.0", "nnU-Net's U-Net, with deep supervision", options, operations);
