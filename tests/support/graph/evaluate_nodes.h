/*
 * evaluate_nodes.h - compute a graph node by node on a device: one request for each node, in node
 * order.
 *
 * This is the tests' own way from nodes to values, independent of passes, plans and programs. Every
 * tensor ends at a guard page, and the bytes around it are checked after each run.
 */
#ifndef TESTS_EVALUATE_NODES_H
#define TESTS_EVALUATE_NODES_H

#include "graph/ir/node.h"
#include "graph/program/program.h"

typedef struct evaluation evaluation;

/*
 * 'g' must outlive the evaluation. Leaves start at 0. f32 nodes are stored as 'storage'; if that
 * has 16 bits, gradients of convolution weights stay in f32. A device in double stores f64 instead
 * of f32.
 */
evaluation *evaluation_new(pons_graph *g, const device *d, pons_type storage, pons_error *err);
void evaluation_free(evaluation *e);
double evaluation_get(const evaluation *e, const pons_node *x, int64_t index);
void evaluation_set(evaluation *e, const pons_node *x, int64_t index, double value);
pons_status evaluation_run(evaluation *e, const pons_step_key *step_key, pons_error *err);
/* Seconds of the kernel of 'x' alone, the fastest of 'rounds'; its inputs are computed before. */
double evaluation_seconds(evaluation *e, const pons_node *x, int rounds,
                          const pons_step_key *step_key,
                          pons_error *err);
const char *evaluation_implementation(const evaluation *e, const pons_node *x);
/* Add to the counts by kind: all requests, and those that the device declined to the reference. */
void evaluation_count(const evaluation *e, int *requests, int *declined);

#endif
