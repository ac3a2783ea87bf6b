/*
 * nnunet_blocks.c - the blocks and the decoder of nnU-Net's networks, with their tensor names.
 *
 *   up_r = stack(concatenate(transposed(up_r+1), features_r)),  kernel = stride = strides[r+1]
 */
#include "nnunet_blocks.h"

static const int one[3] = { 1, 1, 1 };

const char *const nnunet_norm_names[] = { "instance", "batch", NULL };

int nnunet_count(const pons_integers *counts, int stage)
{
    return (int)counts->item[counts->count == 1 ? 0 : stage];
}

static const int *nnunet_kernel(const nnunet *c, int stage)
{
    return c->kernel_sizes.item[c->kernel_sizes.count == 1 ? 0 : stage];
}

/* ---- blocks ---------------------------------------------------------------------------------- */

pons_conv nnunet_conv(const nnunet *c, int stage, const int stride[3])
{
    const int *kernel = nnunet_kernel(c, stage);
    pons_conv conv = { .out = c->features_per_stage.item[stage], .bias = c->conv_bias,
                       .init = PONS_CONV_HE };

    for (int i = 0; i < 3; i++) {
        conv.kernel[i] = kernel[i];
        conv.stride[i] = stride[i];
        conv.padding[i] = (kernel[i] - 1) / 2;
    }
    return conv;
}

pons_node *nnunet_convolve(pons_graph *g, const nnunet *c, const char *name, const pons_conv *conv,
                           double dropout, pons_node *x)
{
    const pons_norm norm = { c->norm, .affine = true, .eps = c->eps };

    x = pons_layer_conv(g, pons_name(g, "%s.conv", name), conv, x);
    x = pons_dropout_channels(g, x, dropout, pons_name(g, "%s.dropout", name));
    return pons_layer_norm(g, pons_name(g, "%s.norm", name), &norm, x);
}

pons_node *nnunet_act(pons_graph *g, const nnunet *c, const char *name, pons_node *x)
{
    if (c->act == PONS_ACT_LEAKYRELU)
        return pons_leaky_relu(g, x, c->negative_slope);
    return pons_layer_act(g, pons_name(g, "%s.nonlin", name), c->act, x);
}

pons_node *nnunet_stack(pons_graph *g, const nnunet *c, const char *name, int stage, int count,
                        const int stride[3], pons_node *x)
{
    for (int i = 0; i < count; i++) {
        const char *block = pons_name(g, "%s.convs.%d", name, i);
        const pons_conv conv = nnunet_conv(c, stage, i == 0 ? stride : one);
        x = nnunet_act(g, c, block, nnunet_convolve(g, c, block, &conv, c->dropout, x));
    }
    return x;
}

/* ---- decoder --------------------------------------------------------------------------------- */

static pons_node *enlarge(pons_graph *g, const char *name, int64_t out, const int stride[3],
                          bool bias, pons_node *x)
{
    pons_conv conv = { .out = out, .bias = bias, .transposed = true, .init = PONS_CONV_HE };

    for (int i = 0; i < 3; i++)
        conv.kernel[i] = conv.stride[i] = stride[i];
    return pons_layer_conv(g, name, &conv, x);
}

void nnunet_decode(pons_graph *g, const nnunet *c, int classes, pons_node *const *features,
                   pons_outputs *outputs)
{
    const pons_conv logits = { .out = classes, .bias = true, .init = PONS_CONV_HE };
    int deepest = c->features_per_stage.count - 1;
    pons_node *x = features[deepest], *output[NNUNET_STAGES_MAX];

    for (int stage = deepest - 1; stage >= 0; stage--) {
        int i = deepest - 1 - stage;
        x = enlarge(g, pons_name(g, "decoder.transpconvs.%d", i),
                    c->features_per_stage.item[stage], c->strides.item[stage + 1], c->conv_bias, x);
        x = pons_concatenate(g, 2, (pons_node *[]){ x, features[stage] }, 4);
        x = nnunet_stack(g, c, pons_name(g, "decoder.stages.%d", i), stage,
                         nnunet_count(&c->n_conv_per_stage_decoder, i), one, x);
        output[stage] = pons_layer_conv(g, pons_name(g, "decoder.seg_layers.%d", i), &logits, x);
    }
    outputs->count = pons_graph_training(g) && c->deep_supervision ? deepest : 1;
    if (outputs->count > PONS_OUTPUTS_MAX)
        outputs->count = PONS_OUTPUTS_MAX;
    for (int i = 0; i < outputs->count; i++)
        outputs->item[i] = output[i];
}

/* ---- options --------------------------------------------------------------------------------- */

pons_status nnunet_check_counts(const char *key, int found, int expected, pons_error *err)
{
    if (found == 1 || found == expected)
        return PONS_OK;
    if (expected == 1)
        return pons_option_fail(err, key, "found %d items, expected 1", found);
    return pons_option_fail(err, key, "found %d items, expected 1 or %d", found, expected);
}

static pons_status check_geometry(const nnunet *c, pons_error *err)
{
    for (int i = 0; i < c->kernel_sizes.count; i++)
        for (int axis = 0; axis < 3; axis++)
            if (c->kernel_sizes.item[i][axis] % 2 == 0)
                return pons_option_fail(err, "kernel_sizes", "found %d in item %d, expected odd "
                                        "values", c->kernel_sizes.item[i][axis], i);
    for (int axis = 0; axis < 3; axis++)
        if (c->strides.item[0][axis] != 1)
            return pons_option_fail(err, "strides", "found %d in item 0, expected 1: the logits "
                                    "have the extent of stage 0", c->strides.item[0][axis]);
    return PONS_OK;
}

pons_status nnunet_check(const nnunet *c, pons_error *err)
{
    int stages = c->features_per_stage.count;

    if (c->strides.count != stages)
        return pons_option_fail(err, "strides", "found %d items, expected %d, as many as "
                                "'features_per_stage'", c->strides.count, stages);
    if (nnunet_check_counts("kernel_sizes", c->kernel_sizes.count, stages, err) != PONS_OK
        || nnunet_check_counts("n_conv_per_stage_decoder", c->n_conv_per_stage_decoder.count,
                               stages - 1, err) != PONS_OK)
        return err->status;
    return check_geometry(c, err);
}
