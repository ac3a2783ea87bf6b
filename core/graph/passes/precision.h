/*
 * precision.h - the types that activations are stored in and products are computed from.
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
 * 16-bit storage of activations, operands of products cast to it (bf16, fp16). 'roots' keep their
 * meaning and are stored as f32.
 */
pons_status pass_precision(pons_graph *g, int root_count, pons_node *const *root, precision p,
                           pons_error *err);

#endif
