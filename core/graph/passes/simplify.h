/*
 * simplify.h - the pass that removes nodes without effect and merges equal ones.
 */
#ifndef CORE_GRAPH_PASSES_SIMPLIFY_H
#define CORE_GRAPH_PASSES_SIMPLIFY_H

#include "graph/ir/node.h"

void pass_simplify(pons_graph *g);

#endif
