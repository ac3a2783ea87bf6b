/*
 * build.h - a graph and its nodes.
 */
#ifndef CORE_GRAPH_IR_BUILD_H
#define CORE_GRAPH_IR_BUILD_H

#include "graph/ir/node.h"
#include "graph/ir/shape.h"

pons_graph *graph_new(bool training);
void graph_free(pons_graph *g);
/* An origin for g->origin; 'name' lives as long as the graph. */
const node_origin *node_origin_new(pons_graph *g, range_kind kind, const char *name);
/* Append a node. The caller has decided its shape and type. */
pons_node *node_new(pons_graph *g, int kind, pons_type type, pons_shape shape, int input_count,
                    pons_node *const *input, const node_attribute *attribute);

#endif
