/*
 * nn.c - layers with the names and initial values of PyTorch, composed of the builders of graph.h.
 *
 * The order in which a layer creates its parameters is their order in memory, and so part of the
 * results: weight before bias, running_var before running_mean.
 */
#include <math.h>

#include <pons/nn.h>

int64_t pons_channels_of(const pons_node *x)
{
    pons_shape shape = pons_shape_of(x);

    return shape.rank > 0 ? shape.extent[shape.rank - 1] : 1;
}

pons_node *pons_vector_parameter(pons_graph *g, const char *name, const char *end, pons_role role,
                                 int64_t count, double value)
{
    return pons_parameter_leaf(g, pons_name(g, "%s.%s", name, end), role,
                               pons_shape_make(1, &count),
                               (pons_init){ PONS_INIT_CONSTANT, value });
}

/* ---- convolution ----------------------------------------------------------------------------- */

static int or_one(int value)
{
    return value == 0 ? 1 : value;
}

/* Rows and columns of the weight [rows, kD, kH, kW, columns]; columns are axis 1 of PyTorch's. */
static pons_shape weight_shape(const pons_conv *c, int64_t in)
{
    int64_t rows = c->transposed ? in : c->out, columns = c->transposed ? c->out : in;

    return pons_shape_make(5, (int64_t[]){ rows, or_one(c->kernel[0]), or_one(c->kernel[1]),
                                           or_one(c->kernel[2]), columns / or_one(c->groups) });
}

/* PyTorch's default for weight and bias. */
static pons_init uniform_init(const pons_shape *weight)
{
    const int64_t *n = weight->extent;

    return (pons_init){ PONS_INIT_UNIFORM,
                        1 / sqrt((double)n[4] * (double)(n[1] * n[2] * n[3])) };
}

static pons_init weight_init(const pons_conv *c, const pons_shape *weight)
{
    const int64_t *n = weight->extent;
    double voxels = (double)(n[1] * n[2] * n[3]), fan_in = (double)n[4] * voxels;

    switch (c->init) {
    case PONS_CONV_HE:
        return (pons_init){ PONS_INIT_NORMAL, sqrt(2 / (1 + 0.01 * 0.01) / fan_in) };
    case PONS_CONV_HE_RELU:
        return (pons_init){ PONS_INIT_NORMAL, sqrt(2 / fan_in) };
    case PONS_CONV_HE_FAN_OUT:
        return (pons_init){ PONS_INIT_NORMAL, sqrt(2 / ((double)n[0] * voxels)) };
    default:
        return uniform_init(weight);
    }
}

static pons_node *bias_parameter(pons_graph *g, const char *name, const pons_conv *c,
                                 pons_init init)
{
    if (c->init == PONS_CONV_HE || c->init == PONS_CONV_HE_RELU)
        return pons_vector_parameter(g, name, "bias", PONS_ROLE_BIAS, c->out, 0);
    return pons_parameter_leaf(g, pons_name(g, "%s.bias", name), PONS_ROLE_BIAS,
                               pons_shape_make(1, &c->out), init);
}

pons_conv pons_conv_cube(int64_t out, int kernel, int stride, int dilation, bool flat)
{
    pons_conv c = { .out = out };

    for (int i = flat ? 1 : 0; i < 3; i++) {
        c.kernel[i] = kernel;
        c.stride[i] = stride;
        c.dilation[i] = dilation;
        c.padding[i] = (kernel - 1) / 2 * dilation;
        c.output_padding[i] = 2 * c.padding[i] + stride - dilation * (kernel - 1) - 1;
    }
    return c;
}

pons_node *pons_layer_conv(pons_graph *g, const char *name, const pons_conv *c, pons_node *x)
{
    pons_shape shape = weight_shape(c, pons_channels_of(x));
    pons_node *weight = pons_parameter_leaf(g, pons_name(g, "%s.weight", name), PONS_ROLE_WEIGHT,
                                            shape, weight_init(c, &shape));
    pons_convolution how = PONS_CONVOLUTION_INIT;

    for (int i = 0; i < 3; i++) {
        how.stride[i] = or_one(c->stride[i]);
        how.dilation[i] = or_one(c->dilation[i]);
        how.pad_low[i] = how.pad_high[i] = c->padding[i];
    }
    how.groups = or_one(c->groups);
    x = c->transposed ? pons_convolve_transposed(g, x, weight, &how, c->output_padding)
                      : pons_convolve(g, x, weight, &how);
    return c->bias ? pons_add(g, x, bias_parameter(g, name, c, uniform_init(&shape))) : x;
}

/* ---- linear ---------------------------------------------------------------------------------- */

static pons_init linear_init(const pons_node *x)
{
    return (pons_init){ PONS_INIT_UNIFORM, 1 / sqrt((double)pons_channels_of(x)) };
}

pons_node *pons_layer_projection(pons_graph *g, const char *name, int64_t out, pons_node *x)
{
    int64_t in = pons_channels_of(x), rows = 1;
    pons_shape shape = pons_shape_of(x);
    pons_node *weight = pons_parameter_leaf(g, pons_name(g, "%s.weight", name), PONS_ROLE_WEIGHT,
                                            pons_shape_make(2, (int64_t[]){ out, in }),
                                            linear_init(x));

    for (int i = 0; i < shape.rank - 1; i++)
        rows *= shape.extent[i];
    x = pons_reshape(g, x, pons_shape_make(2, (int64_t[]){ rows, in }));
    x = pons_matmul(g, x, weight, false, true);
    if (shape.rank > 0)
        shape.extent[shape.rank - 1] = out;
    return pons_reshape(g, x, shape);
}

pons_node *pons_layer_linear(pons_graph *g, const char *name, int64_t out, pons_node *x)
{
    pons_init init = linear_init(x);
    pons_node *y = pons_layer_projection(g, name, out, x);
    pons_node *bias = pons_parameter_leaf(g, pons_name(g, "%s.bias", name), PONS_ROLE_BIAS,
                                          pons_shape_make(1, &out), init);

    return pons_add(g, y, bias);
}

/* ---- normalisation --------------------------------------------------------------------------- */

const char *const pons_norm_names[] = { "instance", "batch", "group", NULL };

static pons_node *batch_norm(pons_graph *g, const char *name, pons_node *x, pons_node *scale,
                             pons_node *shift, double eps)
{
    int64_t count = pons_channels_of(x);
    pons_shape shape = pons_shape_make(1, &count);
    pons_node *variance = pons_state_leaf(g, pons_name(g, "%s.running_var", name), shape, 1);
    pons_node *mean = pons_state_leaf(g, pons_name(g, "%s.running_mean", name), shape, 0);

    return pons_batch_norm(g, x, scale, shift, mean, variance, 0.1, eps);
}

pons_node *pons_layer_norm(pons_graph *g, const char *name, const pons_norm *n, pons_node *x)
{
    int64_t count = pons_channels_of(x);
    double eps = n->eps > 0 ? n->eps : 1e-5;
    pons_node *scale = NULL, *shift = NULL;

    if (n->affine) {
        scale = pons_vector_parameter(g, name, "weight", PONS_ROLE_NORM_SCALE, count, 1);
        shift = pons_vector_parameter(g, name, "bias", PONS_ROLE_NORM_SHIFT, count, 0);
    }
    if (n->kind == PONS_NORM_INSTANCE)
        return pons_instance_norm(g, x, scale, shift, eps);
    if (n->kind == PONS_NORM_GROUP)
        return pons_group_norm(g, x, n->groups, scale, shift, eps);
    if (n->kind == PONS_NORM_LAYER)
        return pons_channel_norm(g, x, scale, shift, eps);
    return batch_norm(g, name, x, scale, shift, eps);
}

/* ---- activation ------------------------------------------------------------------------------ */

const char *const pons_act_names[] = { "prelu", "relu", "leakyrelu", "elu", NULL };

pons_node *pons_layer_act(pons_graph *g, const char *name, pons_act act, pons_node *x)
{
    if (act == PONS_ACT_RELU)
        return pons_relu(g, x);
    if (act == PONS_ACT_LEAKYRELU)
        return pons_leaky_relu(g, x, 0.01);
    if (act == PONS_ACT_ELU)
        return pons_elu(g, x);
    return pons_prelu(g, x, pons_vector_parameter(g, name, "weight", PONS_ROLE_SLOPE, 1, 0.25));
}
