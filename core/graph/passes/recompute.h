/*
 * recompute.h - the pass that copies what the backward pass shall compute again (R14), for devices
 * that fuse.
 */
#ifndef CORE_GRAPH_PASSES_RECOMPUTE_H
#define CORE_GRAPH_PASSES_RECOMPUTE_H

#include "graph/ir/node.h"

/* 'blocks': keep only what must be kept at block borders ([train] recompute). */
pons_status pass_recompute(pons_graph *g, int root_count, pons_node *const *root, bool blocks,
                           pons_error *err);

#endif
