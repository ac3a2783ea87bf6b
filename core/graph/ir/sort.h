/*
 * sort.h - the order of a graph's nodes.
 */
#ifndef CORE_GRAPH_IR_SORT_H
#define CORE_GRAPH_IR_SORT_H

#include "graph/ir/node.h"

void graph_sort(pons_graph *g); /* Move each argument before its readers. */
/* Whether x depends on 'from', directly or through other nodes, or is the same node. */
bool node_is_computed_from(const pons_node *x, const pons_node *from);

#endif
