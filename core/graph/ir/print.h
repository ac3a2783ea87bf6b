/*
 * print.h - a graph as text for graphviz.
 */
#ifndef CORE_GRAPH_IR_PRINT_H
#define CORE_GRAPH_IR_PRINT_H

#include "graph/ir/node.h"

#include <stdio.h>

/* Print a digraph in the DOT language; nodes show kind, name and shape. */
void graph_print_dot(const pons_graph *g, FILE *to);

#endif
