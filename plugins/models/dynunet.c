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
#include "unet_block.h"

typedef struct dynunet {
    pons_triples kernel_size, strides, upsample_kernel_size;
    pons_integers filters;
    int act_name, norm_name;
    int64_t num_groups, deep_supr_num;
    double dropout;
    bool affine, deep_supervision, res_block, trans_bias;
} dynunet;

enum { LEVELS_MAX = 16, FILTERS_MOST = 320, FLAT_FILTERS_MOST = 512 };

static const pons_option options[] = {
    PONS_TRIPLES(dynunet, kernel_size, NULL, 1, 31, "Extent of the convolutions of each level."),
    PONS_TRIPLES(dynunet, strides, NULL, 1, 64, "Stride into each level, the first 1.",
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
    unet_style style;
    int levels;
    int64_t filters[LEVELS_MAX];
} net;

static const char *down_name(const net *n, int level)
{
    if (level == 0)
        return "input_block";
    return level == n->levels - 1 ? "bottleneck" : pons_name(n->g, "downsamples.%d", level - 1);
}

/* The output block of a level. It has logits on the level's extent. */
static pons_node *head(const net *n, const char *name, int classes, pons_node *x)
{
    unet_layer l = { classes, one, one, true, false };

    return unet_convolve(n->g, &n->style, name, &l, x);
}

static pons_node *up(const net *n, int level, pons_node *x, pons_node *skip)
{
    const dynunet *c = n->c;
    const char *name = pons_name(n->g, "upsamples.%d", n->levels - 2 - level);
    const int *stride = c->upsample_kernel_size.item[level];
    unet_layer transposed = { n->filters[level], stride, stride, c->trans_bias, true };
    unet_layer first = { n->filters[level], c->kernel_size.item[level + 1], one, false, false };
    pons_node *y = unet_convolve(n->g, &n->style, pons_name(n->g, "%s.transp_conv", name),
                                 &transposed, x);

    y = pons_concatenate(n->g, 2, (pons_node *[]){ y, skip }, 4);
    return unet_block(n->g, &n->style, pons_name(n->g, "%s.conv_block", name), &first, false, y);
}

static pons_status refuse_count(const char *key, int found, int expected, pons_error *err)
{
    return pons_option_fail(err, key, "found %d items, expected %d", found, expected);
}

/* Features of a level; 'most' where they are doubled. */
static int64_t features_of(const dynunet *c, int level, int64_t most)
{
    int64_t doubled = INT64_C(32) << level;

    return c->filters.count > 0 ? c->filters.item[level] : doubled < most ? doubled : most;
}

/*
 * Kernels must cover strides, and those of even extent change the extent of a map. Upsampling must
 * restore the extents of the encoder.
 */
static pons_status check_level(const dynunet *c, int level, pons_error *err)
{
    const int *kernel = c->kernel_size.item[level], *stride = c->strides.item[level];

    for (int i = 0; i < 3; i++) {
        int most = level == 0 ? 1 : c->res_block && kernel[i] > 1 ? 2 : kernel[i] + 1;
        if (kernel[i] % 2 == 0)
            return pons_option_fail(err, "kernel_size", "found %d in level %d, expected an odd "
                                    "extent such as %d", kernel[i], level, kernel[i] + 1);
        if (stride[i] > most)
            return pons_option_fail(err, "strides", "found %d in level %d, expected at most %d%s",
                                    stride[i], level, most, level == 0 ? "" : most > kernel[i]
                                    ? ", 1 more than the kernel's extent" : " with res_block");
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
        if (check_level(c, i, err) != PONS_OK
            || unet_check_groups(c->norm_name, c->num_groups, features_of(c, i, FILTERS_MOST), i,
                                 err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const dynunet *c = config;
    net n = { .g = g, .c = c, .levels = c->strides.count,
              .style = { .norm = { c->norm_name, c->affine, (int)c->num_groups, 0 },
                         .act = c->act_name, .init = PONS_CONV_HE, .dropout = c->dropout } };
    int heads = c->deep_supervision ? (int)c->deep_supr_num : 0;
    pons_node *at[LEVELS_MAX], *x = pons_input_named(g, inputs, "image");
    pons_shape full = pons_shape_of(x);

    for (int i = 0; i < n.levels; i++) {
        n.filters[i] = features_of(c, i, task->flat ? FLAT_FILTERS_MOST : FILTERS_MOST);
        unet_layer first = { n.filters[i], c->kernel_size.item[i], c->strides.item[i], false,
                             false };
        at[i] = x = unet_block(g, &n.style, down_name(&n, i), &first, c->res_block, x);
    }
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
