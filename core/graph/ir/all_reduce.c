/*
 * all_reduce.c - sums over the replicas that run at the same time, and their gradient (R10).
 */
#include "graph/ir/ir_internal.h"

pons_node *pons_all_reduce(pons_graph *g, pons_node *x)
{
    node_attribute whole = { .all_reduce = { PONS_ALL_REDUCE_WHOLE, 0 } };

    if (!inputs_given(g, NODE_ALL_REDUCE, 1, &x))
        return g->failed;
    if (x->type != PONS_F32)
        return node_refuse(g, NODE_ALL_REDUCE, "sums are of f32: cast the operand");
    return node_new(g, NODE_ALL_REDUCE, PONS_F32, x->shape, 1, &x, &whole);
}

void gradient_all_reduce(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                         pons_node **gradient)
{
    gradient[0] = pons_all_reduce(g, dx);
}
