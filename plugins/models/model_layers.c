/*
 * model_layers.c - activations and batch norm under the names and with the first values of PyTorch.
 */
#include "model_layers.h"

const char *const layer_acts[] = { "prelu", "relu", "leakyrelu", NULL };

pons_node *layer_vector(pons_graph *g, const char *name, const char *end, pons_role role,
                        int64_t count, double value)
{
    return pons_parameter_leaf(g, pons_name(g, "%s.%s", name, end), role,
                               pons_shape_make(1, &count),
                               (pons_init){ PONS_INIT_CONSTANT, value });
}

pons_node *layer_activate(pons_graph *g, layer_act act, const char *name, pons_node *x)
{
    if (act == LAYER_RELU)
        return pons_relu(g, x);
    if (act == LAYER_LEAKYRELU)
        return pons_leaky_relu(g, x, 0.01);
    return pons_prelu(g, x, layer_vector(g, name, "weight", PONS_ROLE_SLOPE, 1, 0.25));
}

pons_node *layer_batch_norm(pons_graph *g, const char *name, pons_node *x, pons_node *scale,
                            pons_node *shift)
{
    pons_shape shape = pons_shape_make(1, &pons_shape_of(x).extent[4]);

    return pons_batch_norm(g, x, scale, shift,
                           pons_state_leaf(g, pons_name(g, "%s.running_mean", name), shape, 0),
                           pons_state_leaf(g, pons_name(g, "%s.running_var", name), shape, 1), 0.1,
                           1e-5);
}
