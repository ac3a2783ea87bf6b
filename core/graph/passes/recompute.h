/*
 * recompute.h - the pass that copies nodes for the backward pass to recompute (R14), for devices
 * that fuse.
 */
#ifndef CORE_GRAPH_PASSES_RECOMPUTE_H
#define CORE_GRAPH_PASSES_RECOMPUTE_H

#include "graph/ir/node.h"

/* 'blocks': keep only the tensors at block borders ([train] recompute). */
pons_status pass_recompute(pons_graph *g, int root_count, pons_node *const *root, bool blocks,
                           pons_error *err);

#endif
