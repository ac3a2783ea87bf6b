/*
 * plugin_check_requests.c - a small graph for each kind of request that a device may get.
 */
#include "cli/plugin/plugin_check.h"

static int64_t extent_of(const pons_node *x, int axis)
{
    return pons_shape_of(x).extent[axis];
}

static pons_node *weight(pons_graph *g, const char *name, pons_shape shape)
{
    return pons_parameter_leaf(g, name, PONS_ROLE_WEIGHT, shape,
                               (pons_init){ PONS_INIT_UNIFORM, 0.5 });
}

static pons_node *vector(pons_graph *g, const char *name, const pons_node *x)
{
    return weight(g, name, pons_shape_make(1, (int64_t[]){ extent_of(x, 4) }));
}

/* Kernel extent, stride and dilation. 'depthwise': each channel is a group. */
typedef struct moves {
    int kernel, stride, dilation;
    bool depthwise;
} moves;

static const moves convolutions[] = {
    { 3, 1, 1, false }, { 1, 1, 1, false }, { 3, 2, 1, false }, { 1, 2, 1, false },
    { 3, 1, 2, false }, { 3, 1, 1, true },
};

/* A convolution whose padding keeps the extent at stride 1. */
static pons_node *convolution(pons_graph *g, pons_node *x, int which)
{
    const moves *m = &convolutions[which];
    int64_t k = m->kernel, in = extent_of(x, 4), out = m->depthwise ? in : 5;
    int stride = m->stride, dilation = m->dilation, pad = dilation * (m->kernel - 1) / 2;
    pons_convolution c = { { stride, stride, stride }, { dilation, dilation, dilation },
                           { pad, pad, pad }, { pad, pad, pad }, m->depthwise ? (int)in : 1 };

    return pons_convolve(g, x, weight(g, "w", pons_shape_make(
        5, (int64_t[]){ out, k, k, k, m->depthwise ? 1 : in })), &c);
}

/* A transposed convolution to twice the extent. */
static pons_node *transposed(pons_graph *g, pons_node *x, int kernel)
{
    int k = kernel, odd = kernel % 2;
    pons_convolution c = { { 2, 2, 2 }, { 1, 1, 1 }, { odd, odd, odd }, { odd, odd, odd }, 1 };
    pons_shape shape = pons_shape_make(5, (int64_t[]){ extent_of(x, 4), k, k, k, 5 });

    return pons_convolve_transposed(g, x, weight(g, "w", shape), &c, (int[]){ odd, odd, odd });
}

/* The product of [N, D H, W C] and [N, W C, 6], or its transpose. */
static pons_node *product(pons_graph *g, pons_node *x, int which)
{
    pons_shape s = pons_shape_of(x);
    int64_t n = s.extent[0], rows = s.extent[1] * s.extent[2], depth = s.extent[3] * s.extent[4];
    pons_node *a = pons_reshape(g, x, pons_shape_make(3, (int64_t[]){ n, rows, depth }));
    pons_node *b = weight(g, "b", pons_shape_make(3, (int64_t[]){ n, depth, 6 }));
    pons_node *c = weight(g, "c", pons_shape_make(3, (int64_t[]){ n, 6, depth }));

    return pons_add(g, pons_matmul(g, a, b, false, false), pons_matmul(g, a, c, false, true));
}

static const pons_pool pools[] = {
    { PONS_POOL_MAX, { 2, 2, 2 }, { 2, 2, 2 }, { 0, 0, 0 }, { 0, 0, 0 }, false },
    { PONS_POOL_MAX, { 3, 3, 3 }, { 2, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, false },
    { PONS_POOL_MEAN, { 2, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, false },
};

static pons_node *pooled(pons_graph *g, pons_node *x, int which)
{
    return pons_pooling(g, x, &pools[which]);
}

/* Resize to twice and then to 3/2 of the extent, so that both directions are checked. */
static pons_node *resized(pons_graph *g, pons_node *x, int mode)
{
    const int64_t up[3] = { 2 * extent_of(x, 1), 2 * extent_of(x, 2), 2 * extent_of(x, 3) };
    const int64_t down[3] = { extent_of(x, 1) + 1, extent_of(x, 2), extent_of(x, 3) - 1 };

    return pons_resize(g, pons_resize(g, x, (pons_resize_mode)mode, up), (pons_resize_mode)mode,
                       down);
}

static pons_node *transpose(pons_graph *g, pons_node *x, int which)
{
    return pons_transpose(g, x, (int[]){ 0, 4, 1, 3, 2 });
}

static pons_node *flip(pons_graph *g, pons_node *x, int which)
{
    return pons_flip(g, x, 1u << 1 | 1u << 3 | 1u << 4);
}

static pons_node *crop(pons_graph *g, pons_node *x, int which)
{
    const int64_t start[5] = { 0, 1, 0, 1, 1 }, step[5] = { 1, 1, 2, 1, 1 };
    const int64_t extent[5] = { 1, extent_of(x, 1) - 1, 2, 2, extent_of(x, 4) - 1 };

    return pons_crop(g, x, start, extent, step);
}

static pons_node *padded(pons_graph *g, pons_node *x, int mode)
{
    const int64_t low[5] = { 0, 1, 2, 0, 0 }, high[5] = { 0, 2, 1, 1, 0 };

    return pons_pad(g, x, (pons_pad_mode)mode, low, high);
}

static pons_node *concatenate(pons_graph *g, pons_node *x, int which)
{
    pons_node *y = pons_concatenate(g, 2, (pons_node *[]){ x, pons_square(g, x) }, 4);

    return pons_concatenate(g, 2, (pons_node *[]){ y, pons_scale(g, y, 0.5) }, 2);
}

/* A gather, which has no gradient for the data. */
static pons_node *gather(pons_graph *g, pons_node *x, int which)
{
    pons_node *index = pons_add_scalar(g, pons_neg(g, pons_iota(g, 1, 0, 3)), 2);
    pons_node *taken = pons_gather(g, pons_stop_gradient(g, x), pons_cast(g, index, PONS_I32), 2);

    return pons_add(g, taken, pons_mean_all(g, x));
}

static pons_node *arg_max(pons_graph *g, pons_node *x, int which)
{
    pons_node *place = pons_cast(g, pons_arg_max(g, x, 4), PONS_F32);
    pons_shape s = pons_shape_of(x);

    s.extent[4] = 1;
    return pons_mul(g, x, pons_reshape(g, place, s));
}

static pons_node *extremes(pons_graph *g, pons_node *x, int which)
{
    const unsigned volume = 1u << 1 | 1u << 2 | 1u << 3;

    return pons_sub(g, pons_reduce_max(g, x, volume), pons_reduce_min(g, x, volume));
}

static pons_node *sums(pons_graph *g, pons_node *x, int which)
{
    pons_node *mean = pons_mean(g, pons_square(g, x), 1u << 0 | 1u << 4);

    return pons_add(g, pons_mul(g, x, mean), pons_sum(g, x, 1u << 2));
}

static pons_node *pointwise(pons_graph *g, pons_node *x, int which)
{
    pons_node *small = pons_tanh(g, x), *root = pons_sqrt(g, pons_add_scalar(g, pons_square(g, x),
                                                                             1));

    small = pons_add(g, pons_exp(g, small), pons_log1p(g, pons_abs(g, x)));
    root = pons_add(g, pons_sin(g, root), pons_erf(g, pons_cos(g, x)));
    return pons_div(g, pons_mul(g, small, root), pons_pow(g, pons_add_scalar(g, pons_abs(g, x), 1),
                                                          pons_scalar(g, 1.7)));
}

static pons_node *softmax(pons_graph *g, pons_node *x, int which)
{
    return pons_add(g, pons_softmax(g, x, 4), pons_log_softmax(g, x, 4));
}

static pons_node *instance_norm(pons_graph *g, pons_node *x, int which)
{
    return pons_prelu(g, pons_instance_norm(g, x, vector(g, "scale", x), vector(g, "shift", x),
                                            1e-5), vector(g, "slope", x));
}

static pons_node *batch_norm(pons_graph *g, pons_node *x, int which)
{
    pons_shape shape = pons_shape_make(1, (int64_t[]){ extent_of(x, 4) });

    return pons_relu(g, pons_batch_norm(g, x, vector(g, "scale", x), vector(g, "shift", x),
                                        pons_state_leaf(g, "mean", shape, 0),
                                        pons_state_leaf(g, "variance", shape, 1), 0.1, 1e-5));
}

static pons_node *group_norm(pons_graph *g, pons_node *x, int which)
{
    int groups = extent_of(x, 4) % 4 == 0 ? 4 : 1;

    return pons_leaky_relu(g, pons_group_norm(g, x, groups, vector(g, "scale", x),
                                              vector(g, "shift", x), 1e-5), 0.1);
}

static pons_node *random_numbers(pons_graph *g, pons_node *x, int which)
{
    pons_node *noise = pons_random_normal(g, "normal", pons_shape_of(x));
    pons_node *share = pons_random_uniform(g, "uniform", pons_shape_of(x));

    return pons_add(g, pons_mul(g, x, share), pons_mul(g, noise, pons_dropout(g, x, 0.3, "drop")));
}

static pons_node *bytes(pons_graph *g, pons_node *x, int which)
{
    pons_node *byte = pons_cast(g, pons_scale(g, pons_abs(g, x), 40), PONS_U8);

    return pons_mul(g, x, pons_cast(g, byte, PONS_F32));
}

const device_request device_requests[] = {
    { "convolution 3", convolution, 0, true },
    { "convolution 1", convolution, 1, true },
    { "convolution 3 with stride 2", convolution, 2, true },
    { "convolution 1 with stride 2", convolution, 3, true },
    { "convolution 3 with dilation 2", convolution, 4, true },
    { "convolution 3 of each channel", convolution, 5, true },
    { "transposed convolution 2", transposed, 2, true },
    { "transposed convolution 3", transposed, 3, true },
    { "matrix product", product, 0, true },
    { "pool max 2", pooled, 0, false },
    { "pool max 3", pooled, 1, false },
    { "pool mean 2", pooled, 2, false },
    { "resize nearest", resized, PONS_RESIZE_NEAREST, false },
    { "resize nearest exact", resized, PONS_RESIZE_NEAREST_EXACT, false },
    { "resize linear", resized, PONS_RESIZE_LINEAR, false },
    { "resize linear aligned", resized, PONS_RESIZE_LINEAR_ALIGNED, false },
    { "transpose", transpose, 0, false },
    { "flip", flip, 0, false },
    { "crop", crop, 0, false },
    { "pad zero", padded, PONS_PAD_ZERO, false },
    { "pad edge", padded, PONS_PAD_EDGE, false },
    { "pad reflect", padded, PONS_PAD_REFLECT, false },
    { "concatenate", concatenate, 0, false },
    { "gather", gather, 0, false },
    { "arg max", arg_max, 0, false },
    { "maximum and minimum", extremes, 0, false },
    { "sums and means", sums, 0, false },
    { "pointwise", pointwise, 0, false },
    { "softmax", softmax, 0, false },
    { "instance norm", instance_norm, 0, false },
    { "batch norm", batch_norm, 0, false },
    { "group norm", group_norm, 0, false },
    { "random numbers", random_numbers, 0, false },
    { "bytes", bytes, 0, false },
    { NULL, NULL, 0, false }
};
