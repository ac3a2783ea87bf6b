/*
 * patch.h - nodes of cases that the device holds: patches cut out of them, normal numbers for
 * patches, sums that the device holds and patches added to them.
 */
#ifndef CORE_GRAPH_IR_PATCH_H
#define CORE_GRAPH_IR_PATCH_H

#include "graph/ir/node.h"

pons_node *node_held(pons_graph *g, const char *name);
/* A held leaf with a type and a shape; node_held has bytes of a size that only the device knows. */
pons_node *node_held_tensor(pons_graph *g, const char *name, pons_type type, pons_shape shape);
pons_node *node_patch(pons_graph *g, pons_node *held, pons_node *place, pons_type type,
                      pons_shape shape);
pons_node *node_patch_normal(pons_graph *g, pons_node *key, pons_shape shape);
pons_node *node_patch_add(pons_graph *g, pons_node *held, pons_node *place, pons_node *weight,
                          pons_node *x);

#endif
