/*
 * plan.h - what the passes make of a graph: a list of kernels in the order they run.
 *
 * The passes up to fuse work on nodes; plan_make turns the result into requests. Behind it prepare,
 * memory and bind (program.c and neighbours) never look at expressions again: a kernel reads and
 * writes tensors, and a tensor is a node that owns memory (reshapes share their argument's).
 */
#ifndef CORE_GRAPH_PROGRAM_PLAN_H
#define CORE_GRAPH_PROGRAM_PLAN_H

#include "graph/ir/node.h"
#include "graph/program/program.h"

typedef struct plan_kernel {
    node_section section;    /* BEGIN (only depends on parameters) or MICRO                       */
    pons_request request;    /* complete: tensors, attributes, packable                           */
    pons_node **input;       /* request.input_count tensors, see plan_owner                       */
    pons_node **output;      /* several kernels may write slices of one tensor (concatenation)    */
    int node_count;          /* nodes that it computes, for explain                               */
    uint64_t flop;
} plan_kernel;

typedef struct plan {
    int kernel_count;
    plan_kernel *kernel;     /* in an order that respects dependencies, memory considered         */
} plan;

/*
 * The passes before are simplify, gradient, simplify, precision, recompute and fuse, each with its
 * own file. 'roots' are all nodes that must be materialised: outputs, loss, gradients,
 * contributions. The passes renumber nodes; arguments have smaller numbers.
 */
pons_status plan_make(pons_graph *g, int root_count, pons_node *const *root, const device *d,
                      const program_settings *settings, plan *out, pons_error *err);

#endif
