/*
 * levels - a U-Net of three levels, by the layers of nn.h. Each level has two convolutions with
 * instance norm and leaky ReLU. The encoder has strides, the decoder transposed convolutions. Built
 * outside the source tree with the installed headers alone.
 */
#include <pons/nn.h>

enum { LEVELS = 3 };

typedef struct levels {
    pons_integers features;
    double dropout;
} levels;

static const pons_option options[] = {
    PONS_INTEGERS(levels, features, "8 16 32", 1, 4096,
                  "Features of each level, the top one first.",
                  .count_min = LEVELS, .count_max = LEVELS),
    PONS_REAL(levels, dropout, "0", 0, 0.9, "Probability that an element is zeroed."),
    PONS_OPTIONS_END
};

static pons_node *unit(pons_graph *g, const char *name, int64_t out, int stride, pons_node *x)
{
    pons_conv conv = { .out = out, .kernel = PONS_CUBE(3), .stride = PONS_CUBE(stride),
                       .padding = PONS_CUBE(1), .bias = true };

    x = pons_layer_conv(g, pons_name(g, "%s.conv", name), &conv, x);
    x = pons_layer_norm(g, pons_name(g, "%s.norm", name), &(pons_norm){ .affine = true }, x);
    return pons_layer_act(g, pons_name(g, "%s.act", name), PONS_ACT_LEAKYRELU, x);
}

static pons_node *block(pons_graph *g, const char *name, int64_t out, int stride, pons_node *x)
{
    x = unit(g, pons_name(g, "%s.0", name), out, stride, x);
    return unit(g, pons_name(g, "%s.1", name), out, 1, x);
}

static pons_node *up(pons_graph *g, const char *name, int64_t out, pons_node *x, pons_node *skip)
{
    pons_conv twice = { .out = out, .kernel = PONS_CUBE(2), .stride = PONS_CUBE(2),
                        .transposed = true };
    pons_node *y = pons_layer_conv(g, pons_name(g, "%s.up", name), &twice, x);

    return block(g, name, out, 1, pons_concatenate(g, 2, (pons_node *[]){ skip, y }, 4));
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const levels *c = config;
    pons_node *at[LEVELS], *x = pons_input_named(g, inputs, "image");

    for (int i = 0; i < LEVELS; i++)
        at[i] = x = block(g, pons_name(g, "down%d", i), c->features.item[i], i > 0 ? 2 : 1, x);
    x = pons_dropout(g, x, c->dropout, "dropout");
    for (int i = LEVELS - 2; i >= 0; i--)
        x = up(g, pons_name(g, "up%d", i), c->features.item[i], x, at[i]);
    outputs->count = 1;
    outputs->item[0] = pons_layer_conv(g, "logits",
                                       &(pons_conv){ .out = task->classes, .bias = true }, x);
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int divisor[3], pons_error *err)
{
    for (int axis = 0; axis < 3; axis++)
        divisor[axis] = 1 << (LEVELS - 1);
    return PONS_OK;
}

static const pons_model_operations operations = { .build = build, .divisor = divisor };

PONS_MODEL(levels, "1.0", "U-Net of three levels", options, operations);
