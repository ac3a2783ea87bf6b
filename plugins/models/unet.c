/*
 * unet - the U-Net with optional residual units (Kerfoot et al. 2018,
 * doi:10.1007/978-3-030-12029-0_40; MONAI's class UNet, whose arguments and tensor names it keeps).
 *
 * Level i divides the extent by strides[i] and has channels[i] features:
 *
 *   level(x) = up(concatenate(d, level_below(d))),   d = down(x)
 *
 * down is a residual unit of num_res_units convolutions (one convolution where that is 0), up a
 * transposed convolution followed by a residual unit of one. Each convolution but the last of the
 * network is followed by normalisation, dropout and activation in the order of adn_ordering.
 */
#include "model_layers.h"

#include <math.h>
#include <string.h>

typedef struct unet {
    pons_integers channels;
    pons_triples strides;
    int kernel_size[3], up_kernel_size[3];
    int64_t num_res_units;
    int act, norm;
    double dropout;
    bool bias;
    const char *adn_ordering;
} unet;

enum { NORM_INSTANCE, NORM_BATCH };

static const char *const norm_names[] = { "instance", "batch", NULL };

static const pons_option options[] = {
    PONS_INTEGERS(unet, channels, NULL, 1, 65536, "Features of each level, the top one first."),
    PONS_TRIPLES(unet, strides, NULL, 1, 64, "Strides between levels, one fewer than channels."),
    PONS_AXES(unet, kernel_size, "3", 1, 31, "Extent of the convolutions; odd."),
    PONS_AXES(unet, up_kernel_size, "3", 1, 31, "Extent of the transposed convolutions; odd."),
    PONS_INTEGER(unet, num_res_units, 0, 0, 64, "Convolutions in a residual unit; 0: no units."),
    PONS_CHOICE(unet, act, prelu, layer_acts, "Activation; prelu has one slope, leakyrelu 0.01."),
    PONS_CHOICE(unet, norm, instance, norm_names, "Normalisation; instance has no parameters."),
    PONS_REAL(unet, dropout, 0, 0, 1, "Probability that an element is zeroed."),
    PONS_FLAG(unet, bias, yes, "Whether convolutions add a bias."),
    PONS_TEXT(unet, adn_ordering, "NDA", "Order of normalisation N, dropout D, activation A."),
    PONS_OPTIONS_END
};

/* One convolution: what it is called and how it moves. */
typedef struct layer {
    const char *name;
    int out;
    const int *kernel, *stride;
    bool transposed;
    bool bare; /* no normalisation, dropout, activation */
} layer;

static const int one[3] = { 1, 1, 1 };

static int64_t volume_of(const int extent[3])
{
    return (int64_t)extent[0] * extent[1] * extent[2];
}

static int64_t channels_of(const pons_node *x)
{
    return pons_shape_of(x).extent[4];
}

static pons_shape vector_shape(int64_t count)
{
    return pons_shape_make(1, &count);
}

static pons_init uniform(double bound)
{
    return (pons_init){ PONS_INIT_UNIFORM, bound };
}

static pons_node *normalise(pons_graph *g, const unet *c, const char *name, pons_node *x)
{
    int64_t count = channels_of(x);

    if (c->norm == NORM_INSTANCE)
        return pons_instance_norm(g, x, NULL, NULL, 1e-5);
    return layer_batch_norm(g, name, x,
                            layer_vector(g, name, "weight", PONS_ROLE_NORM_SCALE, count, 1),
                            layer_vector(g, name, "bias", PONS_ROLE_NORM_SHIFT, count, 0));
}

/* Normalisation, dropout and activation, in the order that the options ask for. */
static pons_node *finish(pons_graph *g, const unet *c, const char *name, pons_node *x)
{
    name = pons_name(g, "%s.adn", name);
    for (const char *part = c->adn_ordering; *part != '\0'; part++) {
        switch (*part) {
        case 'N': x = normalise(g, c, pons_name(g, "%s.N", name), x); break;
        case 'D': x = pons_dropout(g, x, c->dropout, pons_name(g, "%s.D", name)); break;
        case 'A': x = layer_activate(g, c->act, pons_name(g, "%s.A", name), x); break;
        }
    }
    return x;
}

/*
 * Weight, convolution and bias under NAME.weight, NAME.bias. Initial values are PyTorch's: uniform
 * within 1 / sqrt(fan_in), fan_in being axis 1 of the weight in PyTorch's order times the kernel.
 */
static pons_node *affine(pons_graph *g, const unet *c, const char *name, const layer *l,
                         const int *kernel, pons_node *x)
{
    int64_t in = channels_of(x);
    int64_t rows = l->transposed ? in : l->out, columns = l->transposed ? l->out : in;
    pons_init init = uniform(1 / sqrt((double)(columns * volume_of(kernel))));
    pons_shape shape = pons_shape_make(
        5, (int64_t[]){ rows, kernel[0], kernel[1], kernel[2], columns });
    pons_node *weight = pons_parameter_leaf(g, pons_name(g, "%s.weight", name), PONS_ROLE_WEIGHT,
                                            shape, init);
    pons_convolution how = PONS_CONVOLUTION_INIT;
    int extra[3];

    for (int i = 0; i < 3; i++) {
        how.stride[i] = l->stride[i];
        how.pad_low[i] = how.pad_high[i] = (kernel[i] - 1) / 2;
        extra[i] = l->stride[i] - 1;
    }
    x = l->transposed ? pons_convolve_transposed(g, x, weight, &how, extra)
                      : pons_convolve(g, x, weight, &how);
    if (!c->bias)
        return x;
    return pons_add(g, x, pons_parameter_leaf(g, pons_name(g, "%s.bias", name), PONS_ROLE_BIAS,
                                              vector_shape(l->out), init));
}

static pons_node *convolve(pons_graph *g, const unet *c, const layer *l, pons_node *x)
{
    x = affine(g, c, pons_name(g, "%s.conv", l->name), l, l->kernel, x);
    return l->bare ? x : finish(g, c, l->name, x);
}

/* The shortcut of a residual unit: a convolution only where stride or width change. */
static pons_node *shortcut(pons_graph *g, const unet *c, const layer *l, pons_node *x)
{
    bool strided = volume_of(l->stride) != 1;

    if (!strided && channels_of(x) == l->out)
        return x;
    return affine(g, c, pons_name(g, "%s.residual", l->name), l, strided ? l->kernel : one, x);
}

/* 'units' convolutions, the first with the stride, plus the shortcut; nothing after the sum. */
static pons_node *residual_unit(pons_graph *g, const unet *c, const layer *l, int64_t units,
                                pons_node *x)
{
    pons_node *y = x;

    for (int64_t i = 0; i < units; i++) {
        layer unit = *l;
        unit.name = pons_name(g, "%s.conv.unit%d", l->name, (int)i);
        unit.stride = i == 0 ? l->stride : one;
        unit.bare = l->bare && i == units - 1;
        y = convolve(g, c, &unit, y);
    }
    return pons_add(g, y, shortcut(g, c, l, x));
}

static pons_node *down(pons_graph *g, const unet *c, const layer *l, pons_node *x)
{
    return c->num_res_units > 0 ? residual_unit(g, c, l, c->num_res_units, x)
                                : convolve(g, c, l, x);
}

static pons_node *up(pons_graph *g, const unet *c, const char *name, int out, const int *stride,
                     bool top, pons_node *x)
{
    bool units = c->num_res_units > 0;
    layer transposed = { units ? pons_name(g, "%s.0", name) : name, out, c->up_kernel_size,
                         stride, true, top && !units };

    x = convolve(g, c, &transposed, x);
    if (!units)
        return x;

    layer unit = { pons_name(g, "%s.1", name), out, c->kernel_size, one, false, top };
    return residual_unit(g, c, &unit, 1, x);
}

/* Level 'i' and all below it; the lowest level is a single down block without stride. */
static pons_node *level(pons_graph *g, const unet *c, const char *name, int i, int out,
                        pons_node *x)
{
    bool lowest = i == c->channels.count - 1;
    const int *stride = lowest ? one : c->strides.item[i];
    layer block = { lowest ? name : pons_name(g, "%s.0", name), (int)c->channels.item[i],
                    c->kernel_size, stride, false, false };
    pons_node *d = down(g, c, &block, x);

    if (lowest)
        return d;

    pons_node *below = level(g, c, pons_name(g, "%s.1.submodule", name), i + 1, block.out, d);
    pons_node *both = pons_concatenate(g, 2, (pons_node *[]){ d, below }, 4);
    return up(g, c, pons_name(g, "%s.2", name), out, stride, i == 0, both);
}

static pons_status check_ordering(const char *ordering, pons_error *err)
{
    if (ordering[strspn(ordering, "NDA")] != '\0')
        return pons_fail(err, PONS_CONFIG,
                         "'model.adn_ordering' is '%s', expected only the letters N, D and A",
                         ordering);
    for (const char *part = ordering; *part != '\0'; part++)
        if (strchr(part + 1, *part) != NULL)
            return pons_fail(err, PONS_CONFIG,
                             "'model.adn_ordering' is '%s', expected each letter at most once",
                             ordering);
    return PONS_OK;
}

static pons_status check_kernel(const char *key, const int kernel[3], pons_error *err)
{
    for (int i = 0; i < 3; i++)
        if (kernel[i] % 2 == 0)
            return pons_fail(err, PONS_CONFIG, "'model.%s' has the value %d, expected odd values",
                             key, kernel[i]);
    return PONS_OK;
}

static pons_status check(const unet *c, pons_error *err)
{
    if (c->channels.count < 2)
        return pons_fail(err, PONS_CONFIG, "'model.channels' has %d item, expected at least 2",
                         c->channels.count);
    if (c->strides.count != c->channels.count - 1)
        return pons_fail(err, PONS_CONFIG,
                         "'model.strides' has %d items, expected %d, one fewer than 'channels'",
                         c->strides.count, c->channels.count - 1);
    if (check_kernel("kernel_size", c->kernel_size, err) != PONS_OK ||
        check_kernel("up_kernel_size", c->up_kernel_size, err) != PONS_OK)
        return err->status;
    return check_ordering(c->adn_ordering, err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const unet *c = config;

    if (check(c, err) != PONS_OK)
        return err->status;
    outputs->count = 1;
    outputs->item[0] = level(g, c, "model", 0, task->classes,
                             pons_input_named(g, inputs, "image"));
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    const unet *c = config;

    if (check(c, err) != PONS_OK)
        return err->status;
    return pons_strides_divisor(&c->strides, product, err);
}

PONS_MODEL(unet, "1.0", "U-Net with optional residual units", options, build, divisor);
