/*
 * communicate.c - split each sum over replicas into an early start and a late wait, so that
 * independent kernels run in between.
 */
#include "graph/passes/communicate.h"

#include "graph/ir/ir_internal.h"
#include "graph/ir/sort.h"

/* ---- one replica ----------------------------------------------------------------------------- */

/*
 * A sum becomes a reshape to the same shape. Simplify removes it; a root of this kind shares its
 * argument's memory.
 */
void pass_communicate_alone(pons_graph *g)
{
    for (int i = 0; i < g->node_count; i++)
        if (g->node[i]->kind == NODE_ALL_REDUCE)
            g->node[i]->kind = NODE_RESHAPE;
}

/* ---- several --------------------------------------------------------------------------------- */

/* The sum of a constant over replicas is a constant. */
static bool fold_constant(pons_node *x, int replicas)
{
    double number;

    if (!node_constant(x->input[0], &number))
        return false;
    x->kind = NODE_BROADCAST;
    x->input[0] = pons_scalar(x->graph, number * replicas);
    return true;
}

/*
 * The start takes the position of 'x' in the graph. The wait, which is 'x', moves to its first
 * reader.
 */
static void split_all_reduce(pons_graph *g, pons_node *x, int index)
{
    node_attribute attribute = { .all_reduce = { PONS_ALL_REDUCE_START, index } };
    pons_node *start;
    int first = x->number, end;

    g->section = x->section;
    g->scope = x->scope;
    g->origin = x->origin;
    start = node_new(g, NODE_ALL_REDUCE, PONS_F32, x->shape, 1, x->input, &attribute);
    start->backward = x->backward;
    end = start->number;
    g->node[first] = start;
    start->number = first;
    g->node[end] = x;
    x->number = end;
    x->input[0] = start;
    x->attribute.all_reduce.part = PONS_ALL_REDUCE_WAIT;
    x->attribute.all_reduce.index = index;
}

int pass_communicate(pons_graph *g, int replicas)
{
    node_section section = g->section;
    node_scope scope = g->scope;
    int count = g->node_count, sums = 0;

    for (int i = 0; i < count; i++)
        if (g->node[i]->kind == NODE_ALL_REDUCE && !fold_constant(g->node[i], replicas))
            split_all_reduce(g, g->node[i], sums++);
    g->section = section;
    g->scope = scope;
    graph_sort(g);
    return sums;
}
