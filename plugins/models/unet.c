/*
 * unet - the U-Net with optional residual units (Kerfoot et al. 2018,
 * doi:10.1007/978-3-030-12029-0_40; MONAI's class UNet, whose arguments and tensor names it keeps).
 *
 * Level i divides the extent by strides[i] and has channels[i] features:
 *
 *   level(x) = up(concatenate(d, level_below(d))),   d = down(x)
 *
 * 'down' is a residual unit of num_res_units convolutions, or one convolution if that is 0. 'up' is
 * a transposed convolution and a residual unit of one convolution. Normalisation, dropout and
 * activation follow each convolution but the network's last, in the order of adn_ordering.
 */
#include <pons/nn.h>

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

/* The names of PONS_NORM_INSTANCE and PONS_NORM_BATCH. */
static const char *const norm_names[] = { "instance", "batch", NULL };

static const pons_option options[] = {
    PONS_INTEGERS(unet, channels, NULL, 1, 65536, "Features of each level, the top one first.",
                  .count_min = 2),
    PONS_TRIPLES(unet, strides, NULL, 1, 64, "Strides between levels, one fewer than channels."),
    PONS_AXES(unet, kernel_size, "3", 1, 31, "Extent of the convolutions; odd."),
    PONS_AXES(unet, up_kernel_size, "3", 1, 31, "Extent of the transposed convolutions; odd."),
    PONS_INTEGER(unet, num_res_units, "0", 0, 64, "Convolutions in a residual unit; 0: no units."),
    PONS_CHOICE(unet, act, "prelu", pons_act_names,
                "Activation; prelu has one slope, leakyrelu 0.01."),
    PONS_CHOICE(unet, norm, "instance", norm_names, "Normalisation; instance has no parameters."),
    PONS_REAL(unet, dropout, "0", 0, 1, "Probability that an element is zeroed."),
    PONS_FLAG(unet, bias, "yes", "Whether convolutions add a bias."),
    PONS_TEXT(unet, adn_ordering, "NDA", "Order of normalisation N, dropout D, activation A."),
    PONS_OPTIONS_END
};

/* One convolution: its name and geometry. */
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

/* The shift precedes the scale, because the order of parameters is part of the results. */
static pons_node *normalise(pons_graph *g, const unet *c, const char *name, pons_node *x)
{
    const pons_norm norm = { c->norm, .affine = c->norm == PONS_NORM_BATCH };

    if (norm.affine)
        pons_vector_parameter(g, name, "bias", PONS_ROLE_NORM_SHIFT, pons_channels_of(x), 0);
    return pons_layer_norm(g, name, &norm, x);
}

/* Normalisation, dropout and activation in the order of adn_ordering. */
static pons_node *finish(pons_graph *g, const unet *c, const char *name, pons_node *x)
{
    name = pons_name(g, "%s.adn", name);
    for (const char *part = c->adn_ordering; *part != '\0'; part++) {
        switch (*part) {
        case 'N': x = normalise(g, c, pons_name(g, "%s.N", name), x); break;
        case 'D': x = pons_dropout(g, x, c->dropout, pons_name(g, "%s.D", name)); break;
        case 'A': x = pons_layer_act(g, pons_name(g, "%s.A", name), c->act, x); break;
        }
    }
    return x;
}

/* A convolution or a transposed one. Its stride alone changes the extent. */
static pons_node *affine(pons_graph *g, const unet *c, const char *name, const layer *l,
                         const int *kernel, pons_node *x)
{
    pons_conv how = { .out = l->out, .bias = c->bias, .transposed = l->transposed };

    for (int i = 0; i < 3; i++) {
        how.kernel[i] = kernel[i];
        how.stride[i] = l->stride[i];
        how.padding[i] = (kernel[i] - 1) / 2;
        how.output_padding[i] = l->stride[i] - 1;
    }
    return pons_layer_conv(g, name, &how, x);
}

static pons_node *convolve(pons_graph *g, const unet *c, const layer *l, pons_node *x)
{
    x = affine(g, c, pons_name(g, "%s.conv", l->name), l, l->kernel, x);
    return l->bare ? x : finish(g, c, l->name, x);
}

/* The shortcut of a residual unit. It has a convolution only if stride or width change. */
static pons_node *shortcut(pons_graph *g, const unet *c, const layer *l, pons_node *x)
{
    bool strided = volume_of(l->stride) != 1;

    if (!strided && pons_channels_of(x) == l->out)
        return x;
    return affine(g, c, pons_name(g, "%s.residual", l->name), l, strided ? l->kernel : one, x);
}

/* The sum of the shortcut and 'units' convolutions, of which the first has the stride. */
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

/* Level 'i' and all levels below it. The lowest level is a single down block without stride. */
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
        return pons_option_fail(err, "adn_ordering", "found '%s', expected only the letters N, D "
                                "and A", ordering);
    for (const char *part = ordering; *part != '\0'; part++)
        if (strchr(part + 1, *part) != NULL)
            return pons_option_fail(err, "adn_ordering", "found '%s', expected each letter at most "
                                    "once", ordering);
    return PONS_OK;
}

static pons_status check_kernel(const char *key, const int kernel[3], pons_error *err)
{
    for (int i = 0; i < 3; i++)
        if (kernel[i] % 2 == 0)
            return pons_option_fail(err, key, "found %d, expected odd values", kernel[i]);
    return PONS_OK;
}

static pons_status check(const void *config, pons_error *err)
{
    const unet *c = config;

    if (c->strides.count != c->channels.count - 1)
        return pons_option_fail(err, "strides", "found %d items, expected %d, one fewer than "
                                "'channels'", c->strides.count, c->channels.count - 1);
    if (check_kernel("kernel_size", c->kernel_size, err) != PONS_OK
        || check_kernel("up_kernel_size", c->up_kernel_size, err) != PONS_OK)
        return err->status;
    return check_ordering(c->adn_ordering, err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const unet *c = config;

    outputs->count = 1;
    outputs->item[0] = level(g, c, "model", 0, task->classes,
                             pons_input_named(g, inputs, "image"));
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    const unet *c = config;

    return pons_strides_divisor(&c->strides, product, err);
}

static const pons_model_operations operations = {
    .check = check, .build = build, .divisor = divisor
};

PONS_MODEL(unet, "1.0", "U-Net with optional residual units", options, operations);
