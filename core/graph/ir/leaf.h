/*
 * leaf.h - nodes without operands.
 */
#ifndef CORE_GRAPH_IR_LEAF_H
#define CORE_GRAPH_IR_LEAF_H

#include "graph/ir/node.h"

pons_node *node_input(pons_graph *g, const char *name, pons_type type, pons_shape shape);
pons_node *node_scalar(pons_graph *g, const char *name);
pons_node *node_slot(pons_graph *g, pons_node *parameter, int index, pons_slot_kind kind);
pons_node *node_accumulated_gradient(pons_graph *g, pons_node *parameter);
/* Mark the parameters of an output that has no weight in the loss: leaf.left_out. */
void graph_leave_out(pons_graph *g, const pons_node *output);

#endif
