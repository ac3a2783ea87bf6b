/*
 * sort.h - the order of a graph's nodes.
 */
#ifndef CORE_GRAPH_SORT_H
#define CORE_GRAPH_SORT_H

#include "graph/node.h"

void graph_sort(pons_graph *g); /* Nodes added behind their readers move before them. */

#endif
