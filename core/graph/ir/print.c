/*
 * print.c - nodes and edges in the DOT language.
 */
#include "graph/ir/print.h"

#include "graph/ir/shape.h"

/* Print text inside quotes, with a backslash before quotes and backslashes. */
static void put_text(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', to);
        fputc(*text, to);
    }
}

void graph_print_dot(const pons_graph *g, FILE *to)
{
    char text[160];

    fputs("digraph pons {\n  node [shape=box, fontname=monospace];\n", to);
    for (int i = 0; i < g->node_count; i++) {
        const pons_node *x = g->node[i];
        fprintf(to, "  n%d [label=\"%s%s", i, node_kinds[x->kind].name,
                x->name != NULL ? " " : "");
        put_text(to, x->name != NULL ? x->name : "");
        fprintf(to, "\\n%s\"];\n", shape_text(x->shape, text, sizeof text));
        for (int j = 0; j < x->input_count; j++)
            fprintf(to, "  n%d -> n%d;\n", x->input[j]->number, i);
    }
    fputs("}\n", to);
}
