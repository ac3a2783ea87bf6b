/*
 * dynunet - the U-Net of nnU-Net (Isensee et al. 2021, doi:10.1038/s41592-020-01008-z; MONAI's
 * class DynUNet, whose arguments and tensor names it keeps).
 *
 * Level i divides the extent by strides[i] and has filters[i] features:
 *
 *   block(x) = act(norm(conv(act(norm(conv(x))))))              the first convolution strided
 *   res(x)   = act(norm(conv(act(norm(conv(x))))) + norm(conv1(x)))        if res_block
 *   up(x, s) = block(concatenate(transposed(x), s)),  s: features of the encoder at that extent
 *
 * With deep_supervision each level below the top has a head, whose output is resized to the full
 * extent (nearest). [loss] heads has the weights of the heads.
 */
#include <pons/nn.h>

#include <string.h>

typedef struct dynunet {
    pons_triples kernel_size, strides, upsample_kernel_size;
    pons_integers filters;
    int act_name, norm_name;
    int64_t num_groups, deep_supr_num;
    double dropout;
    bool affine, deep_supervision, res_block, trans_bias;
} dynunet;

enum { LEVELS_MAX = 16 };

static const pons_option options[] = {
    PONS_TRIPLES(dynunet, kernel_size, NULL, 1, 31, "Extent of the convolutions of each level."),
    PONS_TRIPLES(dynunet, strides, NULL, 1, 64, "Stride into each level, the first usually 1.",
                 .count_min = 3, .count_max = LEVELS_MAX),
    PONS_TRIPLES(dynunet, upsample_kernel_size, NULL, 1, 64,
                 "Stride and extent of the transposed convolutions: strides without the first."),
    PONS_INTEGERS(dynunet, filters, "", 1, 65536,
                  "Features of each level; default: 32, doubled up to 320 (2D: 512)."),
    PONS_REAL(dynunet, dropout, "0", 0, 1, "Probability that an element is zeroed."),
    PONS_CHOICE(dynunet, norm_name, "instance", pons_norm_names, "Normalisation."),
    PONS_FLAG(dynunet, affine, "yes", "Whether the normalisation scales and shifts."),
    PONS_INTEGER(dynunet, num_groups, "8", 1, 4096, "Groups of channels of norm_name = group."),
    PONS_CHOICE(dynunet, act_name, "leakyrelu", pons_act_names, "Activation; leakyrelu 0.01."),
    PONS_FLAG(dynunet, deep_supervision, "no", "Whether levels below the top have heads."),
    PONS_INTEGER(dynunet, deep_supr_num, "1", 1, 7, "How many levels have, from the top."),
    PONS_FLAG(dynunet, res_block, "no", "Residual blocks on the way down."),
    PONS_FLAG(dynunet, trans_bias, "no", "Whether transposed convolutions add a bias."),
    PONS_OPTIONS_END
};

static const int one[3] = { 1, 1, 1 };

/* The context of all builders. */
typedef struct net {
    pons_graph *g;
    const dynunet *c;
    int levels;
    int64_t filters[LEVELS_MAX];
} net;

static pons_node *normalise(const net *n, const char *name, pons_node *x)
{
    const pons_norm norm = { .kind = n->c->norm_name, .affine = n->c->affine,
                             .groups = (int)n->c->num_groups };

    return pons_layer_norm(n->g, name, &norm, x);
}

/* One convolution with its dropout. Its parameters are NAME.conv.weight and NAME.conv.bias. */
typedef struct layer {
    int64_t out;
    const int *kernel, *stride;
    bool bias, transposed;
} layer;

/* The padding is half of kernel - stride + 1, rounded down. */
static pons_node *convolve(const net *n, const char *name, const layer *l, pons_node *x)
{
    pons_graph *g = n->g;
    pons_conv how = { .out = l->out, .bias = l->bias, .transposed = l->transposed,
                      .init = PONS_CONV_HE };

    for (int i = 0; i < 3; i++) {
        how.kernel[i] = l->kernel[i];
        how.stride[i] = l->stride[i];
        how.padding[i] = (l->kernel[i] - l->stride[i] + 1) / 2;
        how.output_padding[i] = 2 * how.padding[i] + l->stride[i] - l->kernel[i];
    }
    x = pons_layer_conv(g, pons_name(g, "%s.conv", name), &how, x);
    return pons_dropout(g, x, n->c->dropout, pons_name(g, "%s.adn.D", name));
}

/* Two convolutions to 'out' features, the first with the stride. */
static pons_node *block(const net *n, const char *name, const int kernel[3], const int stride[3],
                        int64_t out, bool residual, pons_node *x)
{
    pons_graph *g = n->g;
    layer first = { out, kernel, stride, false, false };
    layer second = { out, kernel, one, false, false };
    layer shortcut = { out, one, stride, false, false };
    const char *slope = pons_name(g, "%s.lrelu", name);
    pons_node *y = convolve(n, pons_name(g, "%s.conv1", name), &first, x);

    y = pons_layer_act(g, slope, n->c->act_name, normalise(n, pons_name(g, "%s.norm1", name), y));
    y = convolve(n, pons_name(g, "%s.conv2", name), &second, y);
    y = normalise(n, pons_name(g, "%s.norm2", name), y);
    if (residual && (pons_channels_of(x) != out || memcmp(stride, one, sizeof one) != 0)) {
        x = convolve(n, pons_name(g, "%s.conv3", name), &shortcut, x);
        x = normalise(n, pons_name(g, "%s.norm3", name), x);
    }
    return pons_layer_act(g, slope, n->c->act_name, residual ? pons_add(g, y, x) : y);
}

static const char *down_name(const net *n, int level)
{
    if (level == 0)
        return "input_block";
    return level == n->levels - 1 ? "bottleneck" : pons_name(n->g, "downsamples.%d", level - 1);
}

/* The output block of a level. It has logits on the level's extent. */
static pons_node *head(const net *n, const char *name, int classes, pons_node *x)
{
    layer l = { classes, one, one, true, false };

    return convolve(n, name, &l, x);
}

static pons_node *up(const net *n, int level, pons_node *x, pons_node *skip)
{
    const dynunet *c = n->c;
    const char *name = pons_name(n->g, "upsamples.%d", n->levels - 2 - level);
    const int *stride = c->upsample_kernel_size.item[level];
    layer transposed = { n->filters[level], stride, stride, c->trans_bias, true };
    pons_node *y = convolve(n, pons_name(n->g, "%s.transp_conv", name), &transposed, x);

    y = pons_concatenate(n->g, 2, (pons_node *[]){ y, skip }, 4);
    return block(n, pons_name(n->g, "%s.conv_block", name), c->kernel_size.item[level + 1], one,
                 n->filters[level], false, y);
}

static pons_status refuse_count(const char *key, int found, int expected, pons_error *err)
{
    return pons_option_fail(err, key, "found %d items, expected %d", found, expected);
}

/* Kernels must cover strides. Upsampling must restore the extents of the encoder. */
static pons_status check_level(const dynunet *c, int level, pons_error *err)
{
    const int *kernel = c->kernel_size.item[level], *stride = c->strides.item[level];

    for (int i = 0; i < 3; i++) {
        if (kernel[i] - stride[i] + 1 < 0 || (c->res_block && stride[i] > 2))
            return pons_option_fail(err, "strides", "found %d in level %d, expected at most %d",
                                    stride[i], level, c->res_block ? 2 : kernel[i] + 1);
        if (level > 0 && c->upsample_kernel_size.item[level - 1][i] != stride[i])
            return pons_option_fail(err, "upsample_kernel_size", "found %d in item %d, expected "
                                    "the stride of level %d, %d",
                                    c->upsample_kernel_size.item[level - 1][i], level - 1, level,
                                    stride[i]);
    }
    return PONS_OK;
}

static pons_status check(const void *config, pons_error *err)
{
    const dynunet *c = config;
    int levels = c->strides.count;

    if (c->kernel_size.count != levels)
        return refuse_count("kernel_size", c->kernel_size.count, levels, err);
    if (c->upsample_kernel_size.count != levels - 1)
        return refuse_count("upsample_kernel_size", c->upsample_kernel_size.count, levels - 1, err);
    if (c->filters.count > 0 && c->filters.count < levels)
        return refuse_count("filters", c->filters.count, levels, err);
    if (c->deep_supervision && c->deep_supr_num > levels - 2)
        return pons_option_fail(err, "deep_supr_num", "found %d, expected at most %d",
                                (int)c->deep_supr_num, levels - 2);
    for (int i = 0; i < levels; i++)
        if (check_level(c, i, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

static void choose_filters(net *n, bool flat)
{
    int64_t most = flat ? 512 : 320;

    for (int i = 0; i < n->levels; i++) {
        int64_t doubled = INT64_C(32) << i;
        n->filters[i] = n->c->filters.count > 0 ? n->c->filters.item[i]
                      : doubled < most ? doubled : most;
    }
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const dynunet *c = config;
    net n = { .g = g, .c = c, .levels = c->strides.count };
    int heads = c->deep_supervision ? (int)c->deep_supr_num : 0;
    pons_node *at[LEVELS_MAX], *x = pons_input_named(g, inputs, "image");
    pons_shape full = pons_shape_of(x);

    choose_filters(&n, task->flat);
    for (int i = 0; i < n.levels; i++)
        at[i] = x = block(&n, down_name(&n, i), c->kernel_size.item[i], c->strides.item[i],
                          n.filters[i], c->res_block, x);
    for (int i = n.levels - 2; i >= 0; i--)
        at[i] = x = up(&n, i, x, at[i]);
    outputs->item[0] = head(&n, "output_block.conv", task->classes, x);
    /* Evaluation has the same parameters and one output. */
    outputs->count = pons_graph_training(g) ? 1 + heads : 1;
    for (int i = 1; i <= heads; i++)
        outputs->item[i] = pons_resize(
            g, head(&n, pons_name(g, "deep_supervision_heads.%d.conv", i - 1), task->classes,
                    at[i]),
            PONS_RESIZE_NEAREST, &full.extent[1]);
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    const dynunet *c = config;

    return pons_strides_divisor(&c->strides, product, err);
}

static const pons_model_operations operations = {
    .check = check, .build = build, .divisor = divisor
};

PONS_MODEL(dynunet, "1.0", "U-Net of nnU-Net, with heads of deep supervision", options, operations);
