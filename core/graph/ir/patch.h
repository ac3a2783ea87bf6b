/*
 * patch.h - nodes for resident memory, which stays on the device between programs: cases with
 * patches cut out of them, and sums with patches added to them. Also random normal numbers for
 * patches.
 */
#ifndef CORE_GRAPH_IR_PATCH_H
#define CORE_GRAPH_IR_PATCH_H

#include "graph/ir/node.h"

pons_node *node_resident(pons_graph *g, const char *name);
/* A resident leaf with a type and a shape. node_resident has bytes of unknown size. */
pons_node *node_resident_tensor(pons_graph *g, const char *name, pons_type type, pons_shape shape);
pons_node *node_patch(pons_graph *g, pons_node *resident, pons_node *rows, pons_type type,
                      pons_shape shape);
pons_node *node_patch_normal(pons_graph *g, pons_node *key, pons_shape shape);
pons_node *node_patch_accumulate(pons_graph *g, pons_node *resident, pons_node *rows,
                                 pons_node *weight, pons_node *x);

#endif
