/*
 * plan.h - what the passes make of a graph: a list of kernels in the order they run.
 *
 * The passes up to fuse work on nodes; plan_make turns the result into requests. Behind it prepare,
 * memory and bind (program.c and neighbours) never look at expressions again: a kernel reads and
 * writes tensors, and a tensor is a node that owns memory (reshapes share their argument's).
 */
#ifndef CORE_GRAPH_PLAN_H
#define CORE_GRAPH_PLAN_H

#include "graph/node.h"
#include "graph/program.h"

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

/* The node whose memory 'x' lives in: x itself but for reshapes (and stop_gradient). */
pons_node *plan_owner(pons_node *x);

/*
 * simplify -> gradient -> simplify -> precision -> recompute -> fuse, each in its own file. 'roots'
 * are all nodes that must be materialised (outputs, loss, gradients, contributions); they keep
 * their meaning and are stored as f32. The passes renumber nodes; arguments have smaller numbers.
 */
void graph_sort(pons_graph *g); /* sort.c: nodes added behind their readers move before them      */
void pass_simplify(pons_graph *g);                                    /* simplify.c               */
/* 16-bit storage of activations, operands of products cast to it (bf16, fp16). */
pons_status pass_precision(pons_graph *g, int root_count, pons_node *const *root, precision p,
                           pons_error *err);                          /* precision.c              */
/* Copies what the backward pass shall compute again (R14); for devices that fuse. */
pons_status pass_recompute(pons_graph *g, int root_count, pons_node *const *root, bool blocks,
                           pons_error *err);                          /* recompute.c              */
/*
 * communicate.c. With one replica a sum over replicas is its argument; with several it becomes a
 * start as early as it can be and a wait just before its first reader. Returns the number of sums.
 */
void pass_communicate_alone(pons_graph *g);
int pass_communicate(pons_graph *g, int replicas);
pons_status plan_make(pons_graph *g, int root_count, pons_node *const *root, const device *d,
                      const program_settings *settings, plan *out, pons_error *err); /* plan.c  */

/* Expressions to map programs, also for the update section: lower.h. */

#endif
