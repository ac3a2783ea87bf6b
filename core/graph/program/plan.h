/*
 * plan.h - the list of kernels that the passes make of a graph, in running order.
 *
 * The passes up to fuse work on nodes; plan_make turns the result into requests. The later steps
 * (prepare, memory, bind) see no expressions: a kernel reads and writes tensors, and a tensor is a
 * node that owns memory (a reshape shares its argument's).
 */
#ifndef CORE_GRAPH_PROGRAM_PLAN_H
#define CORE_GRAPH_PROGRAM_PLAN_H

#include "graph/ir/node.h"
#include "graph/program/program.h"

typedef struct plan_kernel {
    node_section section;    /* BEGIN (depends on parameters alone) or MICRO                      */
    pons_request request;    /* complete: tensors, attributes, packable                           */
    pons_node **input;       /* request.input_count tensors; each node is its own node_owner      */
    pons_node **output;      /* several kernels may write slices of one tensor (concatenation)    */
    int node_count;          /* computed nodes, for explain                                       */
    uint64_t flop;
    bool backward;           /* part of the backward pass                                         */
    const node_origin *origin; /* the plugin of an output's node; NULL: the core                  */
} plan_kernel;

typedef struct plan {
    int kernel_count;
    plan_kernel *kernel;     /* in running order                                                  */
    bool repeats;            /* an evaluation converts and packs weights in each run              */
} plan;

/*
 * Make the plan. The passes simplify, gradient, simplify, precision and recompute have run; the
 * fuse pass is part of it. 'root' are all nodes that must be materialised: outputs, loss,
 * gradients, contributions. The passes renumber nodes; arguments have smaller numbers.
 */
pons_status plan_make(pons_graph *g, int root_count, pons_node *const *root, const device *d,
                      const program_settings *settings, plan *out, pons_error *err);

#endif
