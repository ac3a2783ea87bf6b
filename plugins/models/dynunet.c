/*
 * dynunet - the U-Net of nnU-Net (Isensee et al. 2021, doi:10.1038/s41592-020-01008-z; MONAI's
 * class DynUNet, whose arguments and tensor names it keeps).
 *
 * Level i divides the extent by strides[i] and has filters[i] features:
 *
 *   block(x) = act(norm(conv(act(norm(conv(x))))))              the first convolution strided
 *   res(x)   = act(norm(conv(act(norm(conv(x))))) + norm(conv1(x)))        if res_block
 *   up(x, s) = block(concatenate(transposed(x), s)),  s what the way down has at that extent
 *
 * With deep_supervision the levels below the top have heads of their own, enlarged to the full
 * extent (nearest); [loss] heads has their weights.
 */
#include "model_layers.h"

#include <math.h>
#include <string.h>

typedef struct dynunet {
    pons_triples kernel_size, strides, upsample_kernel_size;
    pons_integers filters;
    int act_name, norm_name;
    int64_t num_groups, deep_supr_num;
    double dropout;
    bool affine, deep_supervision, res_block, trans_bias;
} dynunet;

enum { NORM_INSTANCE, NORM_BATCH, NORM_GROUP };

static const char *const norm_names[] = { "instance", "batch", "group", NULL };

static const pons_option options[] = {
    PONS_TRIPLES(dynunet, kernel_size, NULL, 1, 31, "Extent of the convolutions of each level."),
    PONS_TRIPLES(dynunet, strides, NULL, 1, 64, "Stride into each level, the first usually 1."),
    PONS_TRIPLES(dynunet, upsample_kernel_size, NULL, 1, 64,
                 "Stride and extent of the transposed convolutions: strides without the first."),
    PONS_INTEGERS(dynunet, filters, "", 1, 65536,
                  "Features of each level; default: 32, doubled up to 320 (2D: 512)."),
    PONS_REAL(dynunet, dropout, 0, 0, 1, "Probability that an element is zeroed."),
    PONS_CHOICE(dynunet, norm_name, instance, norm_names, "Normalisation."),
    PONS_FLAG(dynunet, affine, yes, "Whether the normalisation scales and shifts."),
    PONS_INTEGER(dynunet, num_groups, 8, 1, 4096, "Groups of channels of norm_name = group."),
    PONS_CHOICE(dynunet, act_name, leakyrelu, layer_acts, "Activation; leakyrelu 0.01."),
    PONS_FLAG(dynunet, deep_supervision, no, "Whether levels below the top have heads."),
    PONS_INTEGER(dynunet, deep_supr_num, 1, 1, 7, "How many levels have, from the top."),
    PONS_FLAG(dynunet, res_block, no, "Residual blocks on the way down."),
    PONS_FLAG(dynunet, trans_bias, no, "Whether transposed convolutions add a bias."),
    PONS_OPTIONS_END
};

enum { LEVELS_MAX = 16 };

static const int one[3] = { 1, 1, 1 };

/* What all builders need. */
typedef struct net {
    pons_graph *g;
    const dynunet *c;
    int levels;
    int64_t filters[LEVELS_MAX];
} net;

static int64_t channels_of(const pons_node *x)
{
    return pons_shape_of(x).extent[4];
}

static pons_node *normalise(const net *n, const char *name, pons_node *x)
{
    pons_graph *g = n->g;
    int64_t count = channels_of(x);
    pons_node *scale = NULL, *shift = NULL;

    if (n->c->affine) {
        scale = layer_vector(g, name, "weight", PONS_ROLE_NORM_SCALE, count, 1);
        shift = layer_vector(g, name, "bias", PONS_ROLE_NORM_SHIFT, count, 0);
    }
    if (n->c->norm_name == NORM_INSTANCE)
        return pons_instance_norm(g, x, scale, shift, 1e-5);
    if (n->c->norm_name == NORM_GROUP)
        return pons_group_norm(g, x, (int)n->c->num_groups, scale, shift, 1e-5);
    return layer_batch_norm(g, name, x, scale, shift);
}

/* One convolution with its dropout: NAME.conv.weight, NAME.conv.bias. */
typedef struct layer {
    int64_t out;
    const int *kernel, *stride;
    bool bias, transposed;
} layer;

/*
 * Padding is half of kernel - stride + 1, rounded down. Initial weights are normal with
 * He's deviation for a slope of 0.01, where fan_in is axis 1 of the weight in PyTorch's
 * order times the kernel.
 */
static pons_node *convolve(const net *n, const char *name, const layer *l, pons_node *x)
{
    pons_graph *g = n->g;
    int64_t in = channels_of(x), rows = l->transposed ? in : l->out;
    int64_t columns = l->transposed ? l->out : in;
    pons_convolution how = PONS_CONVOLUTION_INIT;
    double taps = 1;
    int extra[3];

    for (int i = 0; i < 3; i++) {
        how.stride[i] = l->stride[i];
        how.pad_low[i] = how.pad_high[i] = (l->kernel[i] - l->stride[i] + 1) / 2;
        extra[i] = 2 * how.pad_low[i] + l->stride[i] - l->kernel[i];
        taps *= l->kernel[i];
    }

    pons_init init = { PONS_INIT_NORMAL, sqrt(2 / (1 + 0.01 * 0.01) / ((double)columns * taps)) };
    pons_shape shape = pons_shape_make(
        5, (int64_t[]){ rows, l->kernel[0], l->kernel[1], l->kernel[2], columns });
    pons_node *weight = pons_parameter_leaf(g, pons_name(g, "%s.conv.weight", name),
                                            PONS_ROLE_WEIGHT, shape, init);
    x = l->transposed ? pons_convolve_transposed(g, x, weight, &how, extra)
                      : pons_convolve(g, x, weight, &how);
    if (l->bias)
        x = pons_add(g, x, layer_vector(g, pons_name(g, "%s.conv", name), "bias", PONS_ROLE_BIAS,
                                        l->out, 0));
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

    y = layer_activate(g, n->c->act_name, slope,
                       normalise(n, pons_name(g, "%s.norm1", name), y));
    y = convolve(n, pons_name(g, "%s.conv2", name), &second, y);
    y = normalise(n, pons_name(g, "%s.norm2", name), y);
    if (residual && (channels_of(x) != out || memcmp(stride, one, sizeof one) != 0)) {
        x = convolve(n, pons_name(g, "%s.conv3", name), &shortcut, x);
        x = normalise(n, pons_name(g, "%s.norm3", name), x);
    }
    return layer_activate(g, n->c->act_name, slope, residual ? pons_add(g, y, x) : y);
}

static const char *down_name(const net *n, int level)
{
    if (level == 0)
        return "input_block";
    return level == n->levels - 1 ? "bottleneck" : pons_name(n->g, "downsamples.%d", level - 1);
}

/* The output block of a level: logits on its extent. */
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
    return pons_fail(err, PONS_CONFIG, "'model.%s' has %d items, expected %d", key, found,
                     expected);
}

/* Kernels must cover strides, and what goes up must meet what came down. */
static pons_status check_level(const dynunet *c, int level, pons_error *err)
{
    const int *kernel = c->kernel_size.item[level], *stride = c->strides.item[level];

    for (int i = 0; i < 3; i++) {
        if (kernel[i] - stride[i] + 1 < 0 || (c->res_block && stride[i] > 2))
            return pons_fail(err, PONS_CONFIG, "'model.strides' has %d in level %d, expected at "
                             "most %d", stride[i], level, c->res_block ? 2 : kernel[i] + 1);
        if (level > 0 && c->upsample_kernel_size.item[level - 1][i] != stride[i])
            return pons_fail(err, PONS_CONFIG, "'model.upsample_kernel_size' has %d in item %d, "
                             "expected the stride of level %d, %d",
                             c->upsample_kernel_size.item[level - 1][i], level - 1, level,
                             stride[i]);
    }
    return PONS_OK;
}

static pons_status check(const dynunet *c, pons_error *err)
{
    int levels = c->strides.count;

    if (levels < 3 || levels > LEVELS_MAX)
        return pons_fail(err, PONS_CONFIG, "'model.strides' has %d items, expected 3 to %d", levels,
                         LEVELS_MAX);
    if (c->kernel_size.count != levels)
        return refuse_count("kernel_size", c->kernel_size.count, levels, err);
    if (c->upsample_kernel_size.count != levels - 1)
        return refuse_count("upsample_kernel_size", c->upsample_kernel_size.count, levels - 1, err);
    if (c->filters.count > 0 && c->filters.count < levels)
        return refuse_count("filters", c->filters.count, levels, err);
    if (c->deep_supervision && c->deep_supr_num > levels - 2)
        return pons_fail(err, PONS_CONFIG, "'model.deep_supr_num' is %d, expected at most %d",
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

    if (check(c, err) != PONS_OK)
        return err->status;
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

    if (check(c, err) != PONS_OK)
        return err->status;
    return pons_strides_divisor(&c->strides, product, err);
}

PONS_MODEL(dynunet, "1.0", "U-Net of nnU-Net, with heads of deep supervision", options, build,
           divisor);
