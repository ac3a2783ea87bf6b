/*
 * recompute.c - what the backward pass computes again instead of keeping it.
 */
#include "graph/plan.h"

pons_status pass_recompute(pons_graph *g, int first_backward, int root_count, pons_node **root,
                           bool blocks, pons_error *err)
{
    for (int i = first_backward; i < g->node_count; i++)
        g->node[i]->backward = true;
    return PONS_OK;
}
