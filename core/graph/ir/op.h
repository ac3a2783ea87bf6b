/*
 * op.h - nodes of op plugins.
 */
#ifndef CORE_GRAPH_IR_OP_H
#define CORE_GRAPH_IR_OP_H

#include "graph/ir/node.h"

/* Check the operations of an op plugin. Configurations of ops are freed with the graph. */
pons_status op_check(const pons_op_attributes *op, pons_error *err);
pons_node *node_op(pons_graph *g, const pons_op_attributes *op, int count, pons_node *const *input);
void graph_ops_free(pons_graph *g);

#endif
