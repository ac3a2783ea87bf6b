/*
 * precision.h - the storage types of activations and the types that products are computed in.
 */
#ifndef CORE_GRAPH_PASSES_PRECISION_H
#define CORE_GRAPH_PASSES_PRECISION_H

#include "graph/ir/node.h"

typedef enum precision {
    PRECISION_AUTO = 0, PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16
} precision;

const char *precision_name(precision p); /* "bf16" */
/* PRECISION_AUTO for an unknown name. */
precision precision_named(const char *name);

/*
 * Store activations in 16 bits and cast the operands of products to them (bf16, fp16). Nodes in
 * 'root' keep their meaning and stay f32.
 */
pons_status pass_precision(pons_graph *g, int root_count, pons_node *const *root, precision p,
                           pons_error *err);

#endif
