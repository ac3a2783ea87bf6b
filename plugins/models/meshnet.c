/*
 * meshnet - dilated convolutions at one width, without pooling (Fedorov et al. 2017,
 * arXiv:1612.00940; nobrainer's class MeshNet, whose arguments and tensor names it keeps).
 *
 *   layer_i(x) = dropout(relu(norm(conv(x)))),  kernel 3, dilation d_i, seven layers
 *
 * The dilations make the receptive field: 37 by 1 1 1 2 4 8 1, 67 by 1 1 2 4 8 16 1, 129 by
 * 1 2 4 8 16 32 1.
 */
#include <pons/nn.h>

typedef struct meshnet {
    int64_t filters;
    int receptive_field;
    double dropout_rate;
} meshnet;

enum { LAYERS = 7 };

static const char *const fields[] = { "37", "67", "129", NULL };
static const int dilations[][LAYERS] = {
    { 1, 1, 1, 2, 4, 8, 1 }, { 1, 1, 2, 4, 8, 16, 1 }, { 1, 2, 4, 8, 16, 32, 1 }
};

static const pons_option options[] = {
    PONS_INTEGER(meshnet, filters, "71", 1, 65536, "Features of each layer."),
    PONS_CHOICE(meshnet, receptive_field, "67", fields, "Voxels that a result depends on."),
    PONS_REAL(meshnet, dropout_rate, "0.25", 0, 1, "Probability that a channel is zeroed."),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const meshnet *c = config;
    const pons_norm norm = { PONS_NORM_BATCH, .affine = true };
    pons_conv logits = { .out = task->classes, .bias = true };
    pons_node *x = pons_input_named(g, inputs, "image");

    for (int i = 0; i < LAYERS; i++) {
        const char *name = pons_name(g, "encoder.%d.block", i);
        pons_conv conv = pons_conv_cube(c->filters, 3, 1, dilations[c->receptive_field][i],
                                        task->flat);
        x = pons_layer_conv(g, pons_name(g, "%s.0", name), &conv, x);
        x = pons_relu(g, pons_layer_norm(g, pons_name(g, "%s.1", name), &norm, x));
        x = pons_dropout_channels(g, x, c->dropout_rate, pons_name(g, "%s.3", name));
    }
    outputs->count = 1;
    outputs->item[0] = pons_layer_conv(g, "classifier", &logits, x);
    return pons_graph_status(g, err);
}

static const pons_model_operations operations = { .build = build };

PONS_MODEL(meshnet, "1.0", "dilated convolutions at one width", options, operations);
