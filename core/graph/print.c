/*
 * print.c - nodes and edges in the DOT language.
 */
#include "graph/print.h"

void graph_print_dot(const pons_graph *g, FILE *to)
{
    char text[160];

    fputs("digraph pons {\n  node [shape=box, fontname=monospace];\n", to);
    for (int i = 0; i < g->node_count; i++) {
        const pons_node *x = g->node[i];
        fprintf(to, "  n%d [label=\"%s%s%s\\n%s\"];\n", i, node_kinds[x->kind].name,
                x->name != NULL ? " " : "", x->name != NULL ? x->name : "",
                shape_text(x->shape, text, sizeof text));
        for (int j = 0; j < x->input_count; j++)
            fprintf(to, "  n%d -> n%d;\n", x->input[j]->number, i);
    }
    fputs("}\n", to);
}
