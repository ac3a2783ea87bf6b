/*
 * evaluate.h - compute a graph node by node on a device: one request for each node, in node order.
 *
 * The tests' own way from nodes to numbers, independent of passes, plans and programs. Every tensor
 * ends at a page that may not be touched, and the bytes around it are checked after each run.
 */
#ifndef TESTS_EVALUATE_H
#define TESTS_EVALUATE_H

#include "graph/ir/node.h"
#include "graph/program/program.h"

typedef struct evaluation evaluation;

/*
 * 'g' must outlive it. Leaves start at 0. f32 nodes are kept as 'storage' (gradients of convolution
 * weights in f32 if that has 16 bits); on a wide device as f64 instead of f32.
 */
evaluation *evaluation_new(pons_graph *g, const device *d, pons_type storage, pons_error *err);
void evaluation_free(evaluation *e);
double evaluation_get(const evaluation *e, const pons_node *x, int64_t index);
void evaluation_set(evaluation *e, const pons_node *x, int64_t index, double value);
pons_status evaluation_run(evaluation *e, const pons_step_key *step_key, pons_error *err);
/* Seconds of the kernel of 'x' alone, the fastest of 'rounds'; what it reads is computed before. */
double evaluation_seconds(evaluation *e, const pons_node *x, int rounds, const pons_step_key *step_key,
                          pons_error *err);
const char *evaluation_implementation(const evaluation *e, const pons_node *x);
/* Adds, by kind, all requests and those that the device declined and the reference device took. */
void evaluation_count(const evaluation *e, int *requests, int *declined);

#endif
