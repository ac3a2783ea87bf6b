/*
 * op_table.h - one table of cases for every node kind: gradients, precisions and devices are
 * checked with the same graphs.
 *
 * A case builds y from leaves of random shapes (sizes 1 and odd among them); the graph computes
 * sum(y * weights) and its gradients. Values of leaves lie on shuffled grids whose offsets differ
 * from leaf to leaf, so that no two elements are equal and none is whole or 0: every kink is
 * further away than a difference reaches.
 */
#ifndef TESTS_OP_TABLE_H
#define TESTS_OP_TABLE_H

#include "evaluate.h"
#include "graph/ir/node.h"

#define OP_LEAVES 8

typedef struct op_leaf {
    pons_node *node;
    double low, high;
    bool whole;               /* values are low .. high - 1                                       */
    bool wanted;              /* its gradient is asked for                                        */
    pons_node *gradient;      /* NULL: no path                                                    */
} op_leaf;

typedef struct op_graph {
    pons_graph *g;
    uint64_t random;
    int variant;
    bool large;               /* for timing: extents of 32, not random ones                       */
    int leaf_count;
    op_leaf leaf[OP_LEAVES];
    pons_node *y, *value;
} op_graph;

typedef struct op_case {
    int kind;                 /* must occur in the graph                                          */
    const char *name;
    int variants;
    pons_node *(*build)(op_graph *o);
    bool no_difference;       /* its gradient is not its derivative (stop_gradient, rounding), or */
                              /* the next run finds what this one has left (held sums)            */
} op_case;

extern const op_case op_cases[];
extern const int op_case_count;

/* Build case 'c' and its gradients; the graph is freed with op_graph_free. */
pons_status op_graph_make(const op_case *c, int variant, uint64_t seed, op_graph *o,
                          pons_error *err);
void op_graph_free(op_graph *o);
/* Give the leaves their values. */
void op_graph_fill(const op_graph *o, evaluation *e);
/* The graph with its leaves filled, computed on 'd'; NULL (err is filled) if that fails. */
evaluation *op_graph_evaluate(const op_graph *o, const device *d, pons_type storage,
                              pons_error *err);
/* y and every gradient agree within 'tolerance' of the largest element, or err names the first. */
pons_status op_graph_agrees(const op_graph *o, const evaluation *expected, const evaluation *found,
                            double tolerance, pons_error *err);

/*
 * The first case of a kind with large tensors, and the node whose kernel is timed: the largest of
 * the kind, or, of kinds without a kernel (leaves, reshapes), the largest that reads one.
 */
typedef struct op_timing {
    const op_case *op;
    op_graph graph;
    const pons_node *node;
    int64_t bytes;            /* read and written by it                                           */
} op_timing;

typedef struct op_time {
    double seconds;           /* the fastest round                                                */
    const char *implementation;
} op_time;

/* Fails for a kind without a case, or whose case moves less than 64 KiB. */
pons_status op_timing_make(int kind, op_timing *t, pons_error *err);
void op_timing_free(op_timing *t);
pons_status op_timing_run(const op_timing *t, const device *d, int rounds, op_time *out,
                          pons_error *err);

/* 'rounds' graphs of every variant of every case. */
pons_status op_table_each(int rounds,
                          pons_status (*check)(const op_case *c, op_graph *o, void *context,
                                               pons_error *err),
                          void *context, pons_error *err);

/* The whole table on 'found' against 'expected'; declined: what 'found' has no kernel for. */
typedef struct op_comparison {
    const device *expected, *found;
    pons_type storage;
    double tolerance;
    int requests[PONS_KERNEL_KIND_COUNT], declined[PONS_KERNEL_KIND_COUNT]; /* by kind            */
} op_comparison;

pons_status op_table_compare(op_comparison *o, int rounds, pons_error *err);

#endif
