/*
 * gradient.h - reverse-mode differentiation of a graph.
 */
#ifndef CORE_GRAPH_IR_GRADIENT_H
#define CORE_GRAPH_IR_GRADIENT_H

#include "graph/ir/node.h"

/* d value / d parameter for every parameter with a path from it (R32 included). */
pons_status graph_gradient(pons_graph *g, pons_node *value, int count, pons_node *const *of,
                           pons_node **gradient, pons_error *err); /* gradient[i] NULL: no path   */

#endif
