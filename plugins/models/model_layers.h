/*
 * model_layers.h - what the models share: MONAI's activations and batch norm, with their
 * parameters.
 */
#ifndef MODELS_LAYERS_H
#define MODELS_LAYERS_H

#include <pons/model.h>

typedef enum layer_act { LAYER_PRELU, LAYER_RELU, LAYER_LEAKYRELU } layer_act;

extern const char *const layer_acts[]; /* the words of a PONS_CHOICE, in that order               */

/* The parameter NAME.END of 'count' equal values. */
pons_node *layer_vector(pons_graph *g, const char *name, const char *end, pons_role role,
                        int64_t count, double value);
/* prelu has one slope, NAME.weight, 0.25 at first; that of leakyrelu is 0.01. */
pons_node *layer_activate(pons_graph *g, layer_act act, const char *name, pons_node *x);
/* Channels are the last axis of x; states NAME.running_mean, NAME.running_var, PyTorch's rates. */
pons_node *layer_batch_norm(pons_graph *g, const char *name, pons_node *x, pons_node *scale,
                            pons_node *shift);

#endif
