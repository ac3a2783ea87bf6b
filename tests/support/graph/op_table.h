/*
 * op_table.h - one table of cases for every node kind. Gradients, precisions and devices are
 * checked with the same graphs.
 *
 * A case builds y from leaves of random shapes (sizes 1 and odd among them). The graph computes
 * sum(y * weights) and its gradients. Values of leaves lie on shuffled grids whose offsets differ
 * from leaf to leaf. No two elements are therefore equal, and none is an integer. Every kink is
 * further away than the step of a difference.
 */
#ifndef TESTS_OP_TABLE_H
#define TESTS_OP_TABLE_H

#include "graph/ir/node.h"
#include "support/graph/evaluate_nodes.h"

#define OP_LEAVES 8

typedef struct op_leaf {
    pons_node *node;
    double low, high;
    bool whole;               /* integer values from low to high - 1                              */
    bool wanted;              /* the test asks for its gradient                                   */
    pons_node *gradient;      /* NULL: no path                                                    */
} op_leaf;

typedef struct op_graph {
    pons_graph *g;
    uint64_t random;
    int variant;
    bool large;               /* for timing: extents of 32, not random                            */
    int leaf_count;
    op_leaf leaf[OP_LEAVES];
    pons_node *y, *value;
} op_graph;

typedef struct op_case {
    int kind;                 /* the graph contains this kind                                     */
    const char *name;
    int variants;
    pons_node *(*build)(op_graph *o);
    bool no_difference;       /* the gradient is not the derivative (stop_gradient, rounding), or */
                              /* a run changes the next one (resident sums)                       */
} op_case;

extern const op_case op_cases[];
extern const int op_case_count;

/* Build case 'c' and its gradients; op_graph_free frees the graph. */
pons_status op_graph_make(const op_case *c, int variant, uint64_t seed, op_graph *o,
                          pons_error *err);
void op_graph_free(op_graph *o);
/* Fill the leaves with their values. */
void op_graph_fill(const op_graph *o, evaluation *e);
/* Evaluate the graph on 'd' with filled leaves; NULL (err is filled) if that fails. */
evaluation *op_graph_evaluate(const op_graph *o, const device *d, pons_type storage,
                              pons_error *err);
/*
 * Check that y and every gradient agree within 'tolerance' of the largest element; err names the
 * first that does not.
 */
pons_status op_graph_agrees(const op_graph *o, const evaluation *expected, const evaluation *found,
                            double tolerance, pons_error *err);

/*
 * The first case of a kind with large tensors, and the timed node. That is the largest node of the
 * kind. For kinds without a kernel (leaves, reshapes) it is the largest node that reads one.
 */
typedef struct op_timing {
    const op_case *op;
    op_graph graph;
    const pons_node *node;
    int64_t bytes;            /* bytes that the node reads and writes                             */
} op_timing;

typedef struct op_time {
    double seconds;           /* of the fastest round                                             */
    const char *implementation;
} op_time;

/*
 * Prepare the timing of a kind. Fails for a kind without a case, or one whose case moves less than
 * 64 KiB.
 */
pons_status op_timing_make(int kind, op_timing *t, pons_error *err);
void op_timing_free(op_timing *t);
pons_status op_timing_run(const op_timing *t, const device *d, int rounds, op_time *out,
                          pons_error *err);

/* Call 'check' for 'rounds' graphs of every variant of every case. */
pons_status op_table_each(int rounds,
                          pons_status (*check)(const op_case *c, op_graph *o, void *context,
                                               pons_error *err),
                          void *context, pons_error *err);

/*
 * A comparison of the whole table on 'found' with 'expected'; 'declined' counts requests without a
 * kernel of 'found'.
 */
typedef struct op_comparison {
    const device *expected, *found;
    pons_type storage;
    double tolerance;
    int requests[PONS_KERNEL_KIND_COUNT], declined[PONS_KERNEL_KIND_COUNT]; /* by kind            */
} op_comparison;

pons_status op_table_compare(op_comparison *o, int rounds, pons_error *err);

#endif
