/*
 * fast_ddpm - the network of a diffusion model: residual blocks down and up that are told the step
 * of the diffusion (Ho et al. 2020, arXiv:2006.11239; Jiang et al. 2024, arXiv:2405.14802). Tensor
 * names and arguments are those of Fast-DDPM's 3D network.
 *
 * Level i has ch ch_mult[i] features on half the extent of the one above. With the embedding e of
 * the timestep t:
 *
 *   e        = linear(swish(linear(s))),  s = sin(t f_k), cos(t f_k)
 *   f_k      = 10000^(-k / (ch/2 - 1))
 *   block(x) = conv(dropout(swish(norm(conv(swish(norm(x))) + linear(swish(e)))))) + x
 *   down_i   = num_res_blocks blocks, then a convolution of stride 2
 *   up_i     = num_res_blocks + 1 blocks of what is there beside what 'down' kept, then a
 *              convolution of the nearest neighbours at twice the extent
 *
 * A block that changes the number of features takes the shortcut through a 1 x 1 x 1 convolution.
 */
#include <math.h>

#include <pons/nn.h>

typedef struct fast_ddpm {
    int64_t ch, num_res_blocks, num_groups;
    double dropout;
    pons_integers ch_mult;
} fast_ddpm;

enum { LEVELS_MAX = 8, BLOCKS_MAX = 16, KEPT_MAX = 1 + LEVELS_MAX * (BLOCKS_MAX + 1) };

static const pons_option options[] = {
    PONS_INTEGER(fast_ddpm, ch, "64", 4, 4096, "Features of the first level, an even number."),
    PONS_INTEGERS(fast_ddpm, ch_mult, "1 2 4", 1, 64, "Factor on the features of each level.",
                  .count_max = LEVELS_MAX),
    PONS_INTEGER(fast_ddpm, num_res_blocks, "2", 1, BLOCKS_MAX, "Residual blocks of a level."),
    PONS_INTEGER(fast_ddpm, num_groups, "32", 1, 4096,
                 "Groups of a normalisation, or the largest smaller number that divides the "
                 "features. One feature a group loses the mean of an image."),
    PONS_REAL(fast_ddpm, dropout, "0.1", 0, 1,
              "Probability that an element inside of a block is zero."),
    PONS_OPTIONS_END
};

/* The context of all builders, and the feature maps that the way up takes, the last one first. */
typedef struct net {
    pons_graph *g;
    const fast_ddpm *c;
    bool flat;
    pons_node *step;          /* swish(e) [N, 4 ch]                                               */
    int kept_count;
    pons_node *kept[KEPT_MAX];
} net;

static pons_node *keep(net *n, pons_node *x)
{
    n->kept[n->kept_count++] = x;
    return x;
}

static pons_node *swish(pons_graph *g, pons_node *x)
{
    return pons_mul(g, x, pons_sigmoid(g, x));
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* The sinusoid of the timesteps [N] as [N, ch]. */
static pons_node *sinusoid(pons_graph *g, int64_t ch, pons_node *timestep)
{
    int64_t half = ch / 2, batch = pons_shape_of(timestep).extent[0];
    pons_node *frequency = pons_exp(g, pons_scale(g, pons_iota(g, 2, 1, half),
                                                  -log(10000) / (double)(half - 1)));
    pons_node *column = pons_reshape(g, timestep, pons_shape_make(2, (int64_t[]){ batch, 1 }));
    pons_node *angle = pons_mul(g, column, frequency);

    return pons_concatenate(g, 2, (pons_node *[]){ pons_sin(g, angle), pons_cos(g, angle) }, 1);
}

static pons_node *embed(const net *n, pons_node *timestep)
{
    pons_graph *g = n->g;
    pons_node *e = sinusoid(g, n->c->ch, timestep);

    e = swish(g, pons_layer_linear(g, "temb.dense.0", 4 * n->c->ch, e));
    return swish(g, pons_layer_linear(g, "temb.dense.1", 4 * n->c->ch, e));
}

static pons_node *convolve(const net *n, const char *name, int64_t out, int kernel, int stride,
                           pons_node *x)
{
    pons_conv c = pons_conv_cube(out, kernel, stride, 1, n->flat);

    c.bias = true;
    return pons_layer_conv(n->g, name, &c, x);
}

/* Normalisation in the largest number of groups up to num_groups that divides the features. */
static pons_node *activate(const net *n, const char *name, pons_node *x)
{
    pons_norm norm = { PONS_NORM_GROUP, .affine = true, .groups = (int)n->c->num_groups,
                       .eps = 1e-6 };

    while (pons_channels_of(x) % norm.groups != 0)
        norm.groups--;
    return swish(n->g, pons_layer_norm(n->g, name, &norm, x));
}

static pons_node *add_step(const net *n, const char *name, pons_node *x)
{
    pons_shape shape = pons_shape_of(x);
    pons_node *step = pons_layer_linear(n->g, name, pons_channels_of(x), n->step);

    shape.extent[1] = shape.extent[2] = shape.extent[3] = 1;
    return pons_add(n->g, x, pons_reshape(n->g, step, shape));
}

static pons_node *block(const net *n, const char *name, int64_t out, pons_node *x)
{
    pons_graph *g = n->g;
    pons_node *y = activate(n, pons_name(g, "%s.norm1", name), x);

    y = convolve(n, pons_name(g, "%s.conv1", name), out, 3, 1, y);
    y = add_step(n, pons_name(g, "%s.temb_proj", name), y);
    y = activate(n, pons_name(g, "%s.norm2", name), y);
    y = pons_dropout(g, y, n->c->dropout, pons_name(g, "%s.dropout", name));
    y = convolve(n, pons_name(g, "%s.conv2", name), out, 3, 1, y);
    if (pons_channels_of(x) != out)
        x = convolve(n, pons_name(g, "%s.nin_shortcut", name), out, 1, 1, x);
    return pons_add(g, x, y);
}

/* ---- the network ----------------------------------------------------------------------------- */

static int64_t width_of(const net *n, int level)
{
    return n->c->ch * n->c->ch_mult.item[level];
}

static pons_node *descend(net *n, pons_node *x)
{
    int levels = n->c->ch_mult.count;

    x = keep(n, convolve(n, "conv_in", n->c->ch, 3, 1, x));
    for (int i = 0; i < levels; i++) {
        for (int j = 0; j < (int)n->c->num_res_blocks; j++)
            x = keep(n, block(n, pons_name(n->g, "down.%d.block.%d", i, j), width_of(n, i), x));
        if (i < levels - 1)
            x = keep(n, convolve(n, pons_name(n->g, "down.%d.downsample.conv", i),
                                 width_of(n, i), 3, 2, x));
    }
    return x;
}

static pons_node *enlarge(const net *n, const char *name, pons_node *x)
{
    pons_shape s = pons_shape_of(x);
    int64_t extent[3] = { s.extent[1] * (n->flat ? 1 : 2), s.extent[2] * 2, s.extent[3] * 2 };

    return convolve(n, name, pons_channels_of(x), 3, 1,
                    pons_resize(n->g, x, PONS_RESIZE_NEAREST, extent));
}

static pons_node *ascend(net *n, pons_node *x)
{
    pons_graph *g = n->g;

    for (int i = n->c->ch_mult.count - 1; i >= 0; i--) {
        for (int j = 0; j <= (int)n->c->num_res_blocks; j++) {
            pons_node *both[] = { x, n->kept[--n->kept_count] };
            x = block(n, pons_name(g, "up.%d.block.%d", i, j), width_of(n, i),
                      pons_concatenate(g, 2, both, 4));
        }
        if (i > 0)
            x = enlarge(n, pons_name(g, "up.%d.upsample.conv", i), x);
    }
    return x;
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    net n = { .g = g, .c = config, .flat = task->flat };
    pons_node *image = pons_input_named(g, inputs, "image"), *x;
    pons_node *timestep = pons_input_named(g, inputs, "timestep");

    if (pons_graph_status(g, err) != PONS_OK)
        return err->status;
    n.step = embed(&n, timestep);
    x = descend(&n, image);
    x = block(&n, "mid.block_1", pons_channels_of(x), x);
    x = block(&n, "mid.block_2", pons_channels_of(x), x);
    x = ascend(&n, x);
    outputs->count = 1;
    outputs->item[0] = convolve(&n, "conv_out", task->classes, 3, 1, activate(&n, "norm_out", x));
    return pons_graph_status(g, err);
}

static pons_status check(const void *config, pons_error *err)
{
    const fast_ddpm *c = config;

    if (c->ch % 2 == 0)
        return PONS_OK;
    return pons_option_fail(err, "ch", "found %d, expected an even number", (int)c->ch);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    const fast_ddpm *c = config;

    for (int axis = 0; axis < 3; axis++)
        product[axis] = 1 << (c->ch_mult.count - 1);
    return PONS_OK;
}

static const pons_model_operations operations = {
    .check = check, .build = build, .divisor = divisor
};

PONS_MODEL(fast_ddpm, "1.0", "denoising network of a diffusion model", options, operations);
