/*
 * highresnet - dilated residual blocks at full resolution (Li et al. 2017, arXiv:1707.01992;
 * nobrainer's class HighResNet, whose arguments and tensor names it keeps).
 *
 *   block(x) = x + conv(relu(norm(conv(relu(norm(x))))))
 *   stage_i  = n_blocks blocks of dilation 1, 2 and 4
 *   between two stages zeros triple the channels, as many before as behind, and conv1 takes 2/3
 */
#include <pons/nn.h>

typedef struct highresnet {
    int64_t base_filters, n_blocks;
    double dropout_rate;
} highresnet;

enum { STAGES = 3 };

static const pons_option options[] = {
    PONS_INTEGER(highresnet, base_filters, "16", 1, 4096,
                 "Features of the first stage; each further one has twice as many."),
    PONS_INTEGER(highresnet, n_blocks, "3", 1, 64, "Residual blocks of each stage."),
    PONS_REAL(highresnet, dropout_rate, "0", 0, 1,
              "Probability that a channel of the last stage is zeroed."),
    PONS_OPTIONS_END
};

static pons_node *activate(pons_graph *g, const char *name, pons_node *x)
{
    const pons_norm norm = { PONS_NORM_BATCH, .affine = true };

    return pons_relu(g, pons_layer_norm(g, name, &norm, x));
}

static pons_node *block(pons_graph *g, const char *name, int dilation, bool flat, pons_node *x)
{
    const pons_conv conv = pons_conv_cube(pons_channels_of(x), 3, 1, dilation, flat);
    pons_node *y = x;

    for (int i = 0; i < 6; i += 3) {
        y = activate(g, pons_name(g, "%s.path.%d", name, i), y);
        y = pons_layer_conv(g, pons_name(g, "%s.path.%d", name, i + 2), &conv, y);
    }
    return pons_add(g, y, x);
}

/* From w channels to 2 w. */
static pons_node *widen(pons_graph *g, const char *name, pons_node *x)
{
    int64_t width = pons_channels_of(x);
    const pons_conv conv = { .out = 2 * width };

    x = pons_pad(g, x, PONS_PAD_ZERO, (int64_t[]){ 0, 0, 0, 0, width },
                 (int64_t[]){ 0, 0, 0, 0, width });
    return pons_layer_conv(g, name, &conv, x);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const highresnet *c = config;
    pons_conv first = pons_conv_cube(c->base_filters, 3, 1, 1, task->flat);
    const pons_conv logits = { .out = task->classes, .bias = true };
    pons_node *x = pons_layer_conv(g, "init_conv", &first, pons_input_named(g, inputs, "image"));

    for (int stage = 1; stage <= STAGES; stage++) {
        if (stage > 1)
            x = widen(g, pons_name(g, "stage%d_proj", stage), x);
        for (int i = 0; i < (int)c->n_blocks; i++)
            x = block(g, pons_name(g, "stage%d.%d", stage, i), 1 << (stage - 1), task->flat, x);
    }
    x = pons_dropout_channels(g, x, c->dropout_rate, "dropout");
    outputs->count = 1;
    outputs->item[0] = pons_layer_conv(g, "classifier.2", &logits, activate(g, "classifier.0", x));
    return pons_graph_status(g, err);
}

static const pons_model_operations operations = { .build = build };

PONS_MODEL(highresnet, "1.0", "dilated residual blocks at full resolution", options, operations);
