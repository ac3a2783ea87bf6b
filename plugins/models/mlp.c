/*
 * mlp - a perceptron with hidden layers on all values of an image.
 *
 *   x_i = relu(W_i x_{i-1} + b_i),  logits = W x_n + b,  x_0 the image, channel by channel
 *
 * Tensors have the names of a torch.nn.Sequential 'layers' that alternates Linear and ReLU. The
 * default is the network of PyTorch's guide to data parallelism; 784-512-256-10 has 535,818
 * parameters.
 */
#include <pons/nn.h>

typedef struct mlp {
    pons_integers hidden;
} mlp;

static const pons_option options[] = {
    PONS_INTEGERS(mlp, hidden, "512 256", 1, 65536, "Features of each hidden layer."),
    PONS_OPTIONS_END
};

/* The values of each image in one row, in PyTorch's order: channel by channel. */
static pons_node *flatten(pons_graph *g, pons_node *x)
{
    pons_shape s = pons_shape_of(x);

    if (s.extent[4] > 1)
        x = pons_transpose(g, x, (int[]){ 0, 4, 1, 2, 3 });
    return pons_reshape(g, x, (pons_shape){ 2, { s.extent[0], s.extent[1] * s.extent[2]
                                                 * s.extent[3] * s.extent[4] } });
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const mlp *c = config;
    pons_node *x = flatten(g, pons_input_named(g, inputs, "image"));

    for (int i = 0; i <= c->hidden.count; i++) {
        bool last = i == c->hidden.count;

        x = pons_layer_linear(g, pons_name(g, "layers.%d", 2 * i),
                              last ? task->classes : c->hidden.item[i], x);
        x = last ? x : pons_relu(g, x);
    }
    outputs->count = 1;
    outputs->item[0] = pons_reshape(g, x, (pons_shape){ 5, { pons_shape_of(x).extent[0], 1, 1, 1,
                                                            task->classes } });
    return pons_graph_status(g, err);
}

static const pons_model_operations operations = { .build = build };

PONS_MODEL(mlp, "1.0", "a perceptron with hidden layers", options, operations);
