/*
 * communicate.c - start each sum over replicas early and wait for it late, so that kernels which do
 * not need it run while it is under way.
 */
#include "graph/passes/communicate.h"

#include "graph/ir/ir_internal.h"
#include "graph/ir/sort.h"

/* ---- one replica ----------------------------------------------------------------------------- */

/* A reshape to the same shape: simplify takes it out, a root of this kind lies in its argument. */
void pass_communicate_alone(pons_graph *g)
{
    for (int i = 0; i < g->node_count; i++)
        if (g->node[i]->kind == NODE_ALL_REDUCE)
            g->node[i]->kind = NODE_RESHAPE;
}

/* ---- several --------------------------------------------------------------------------------- */

/* The sum of a number that all replicas have is a number. */
static bool fold_constant(pons_node *x, int replicas)
{
    double number;

    if (!node_constant(x->input[0], &number))
        return false;
    x->kind = NODE_BROADCAST;
    x->input[0] = pons_scalar(x->graph, number * replicas);
    return true;
}

/* The start takes the place of x in the graph; x, as the wait, goes where its first reader is. */
static void split(pons_graph *g, pons_node *x, int index)
{
    node_attribute attribute = { .all_reduce = { PONS_ALL_REDUCE_START, index } };
    pons_node *start;
    int place = x->number, end;

    g->section = x->section;
    g->scope = x->scope;
    start = node_new(g, NODE_ALL_REDUCE, PONS_F32, x->shape, 1, x->input, &attribute);
    start->backward = x->backward;
    end = start->number;
    g->node[place] = start;
    start->number = place;
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
            split(g, g->node[i], sums++);
    g->section = section;
    g->scope = scope;
    graph_sort(g);
    return sums;
}
