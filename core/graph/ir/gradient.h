/*
 * gradient.h - reverse-mode differentiation of a graph.
 */
#ifndef CORE_GRAPH_IR_GRADIENT_H
#define CORE_GRAPH_IR_GRADIENT_H

#include "graph/ir/node.h"

/* Add nodes for d value / d parameter, for each parameter in 'of' (R32 included). */
pons_status graph_gradient(pons_graph *g, pons_node *value, int count, pons_node *const *of,
                           pons_node **gradient, pons_error *err); /* gradient[i] = NULL: no path */

#endif
