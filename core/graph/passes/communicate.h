/*
 * communicate.h - the pass that splits sums over replicas.
 *
 * With one replica a sum is its argument. With several it becomes a start as early as possible and
 * a wait just before its first reader.
 */
#ifndef CORE_GRAPH_PASSES_COMMUNICATE_H
#define CORE_GRAPH_PASSES_COMMUNICATE_H

#include "graph/ir/node.h"

void pass_communicate_alone(pons_graph *g);
/* Returns the number of sums. */
int pass_communicate(pons_graph *g, int replicas);

#endif
