/*
 * sort.c - restore the order of nodes, arguments before readers, after a pass has redirected
 * readers to new nodes.
 *
 * Nodes keep their order where possible. An appended node moves to just before its first reader.
 */
#include "graph/ir/sort.h"

#include "base/arena.h"

/* A node on the path of the depth-first walk, and the next argument to visit. */
typedef struct descent {
    pons_node *node;
    int next;
} descent;

static void emit_node(pons_graph *g, pons_node *x, bool *done, descent *stack, int *count,
                      pons_node **order)
{
    int depth = 0;

    stack[depth++] = (descent){ x, 0 };
    while (depth > 0) {
        descent *top = &stack[depth - 1];

        if (done[top->node->number]) {
            depth--;
        } else if (top->next < top->node->input_count) {
            stack[depth++] = (descent){ top->node->input[top->next++], 0 };
        } else {
            done[top->node->number] = true;
            order[(*count)++] = top->node;
            depth--;
        }
    }
}

void graph_sort(pons_graph *g)
{
    arena *scratch = arena_new();
    size_t size = (size_t)g->node_count + 1;
    bool *done = arena_alloc(scratch, size);
    descent *stack = arena_alloc(scratch, sizeof(*stack) * size);
    pons_node **order = arena_alloc(scratch, sizeof(*order) * size);
    int count = 0;

    for (int i = 0; i < g->node_count; i++)
        if (!g->node[i]->copy_of)
            emit_node(g, g->node[i], done, stack, &count, order);
    for (int i = 0; i < g->node_count; i++)
        emit_node(g, g->node[i], done, stack, &count, order);
    for (int i = 0; i < count; i++) {
        g->node[i] = order[i];
        order[i]->number = i;
    }
    arena_free(scratch);
}

bool node_is_computed_from(const pons_node *x, const pons_node *from)
{
    const pons_graph *g = x->graph;
    arena *scratch = arena_new();
    bool *found = arena_alloc(scratch, (size_t)g->node_count + 1), result;

    found[from->number] = true;
    for (int i = from->number + 1; i <= x->number; i++)
        for (int k = 0; k < g->node[i]->input_count; k++)
            found[i] = found[i] || found[g->node[i]->input[k]->number];
    result = found[x->number];
    arena_free(scratch);
    return result;
}
