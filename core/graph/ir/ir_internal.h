/*
 * ir_internal.h - functions that several builders share.
 */
#ifndef CORE_GRAPH_IR_IR_INTERNAL_H
#define CORE_GRAPH_IR_IR_INTERNAL_H

#include "graph/ir/build.h"

/* True if every input is a node of 'g' that has not failed; else a failure is recorded. */
bool inputs_given(pons_graph *g, int kind, int count, pons_node *const *input);
/* Record "'KIND': ..." with status PONS_PLUGIN, and return the failed node of 'g'. */
pons_node *node_refuse(pons_graph *g, int kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* False, with a recorded failure, for a shape with an impossible rank or extent. */
bool shape_valid(pons_graph *g, int kind, pons_shape s);
/* All axes of a tensor of rank 'rank'; whether 'axes' is a subset of them. */
unsigned axes_all(int rank);
bool axes_valid(pons_graph *g, int kind, const pons_node *x, unsigned axes);

/*
 * Reserve the name of a random stream. False, with a recorded failure, if it is in use or its hash
 * collides (R5).
 */
bool graph_stream_add(pons_graph *g, uint64_t hash, const char *name);

/* The value of a constant, through broadcasts and reshapes. */
bool node_constant(const pons_node *x, double *value);
/* 'x' repeated to 'shape'; 'x' itself if it has that shape. */
pons_node *node_repeat(pons_graph *g, pons_node *x, pons_shape shape);

/* The gradient of x from those of its mean and variance, of which one may be NULL. */
pons_node *moments_gradient(pons_graph *g, pons_node *moments, pons_node *dmean,
                            pons_node *dvariance);

/* Gradient rules, of the type of node_kind_facts.gradient. */
#define GRADIENT_RULES(X)                                                                         \
    X(add) X(sub) X(mul) X(div) X(min) X(max) X(pow) X(select) X(neg) X(abs) X(sqrt) X(exp)       \
    X(expm1) X(log) X(log1p) X(sin) X(cos) X(tanh) X(erf) X(cast) X(sum) X(maximum) X(minimum)    \
    X(convolution) X(convolution_input_gradient) X(convolution_weight_gradient) X(matmul) X(pool) \
    X(resize) X(reshape) X(transpose) X(broadcast) X(flip) X(crop) X(pad) X(concatenate) \
    X(all_reduce) X(op)
#define GRADIENT_RULE_(name)                                                                      \
    void gradient_##name(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,          \
                         pons_node **gradient);
GRADIENT_RULES(GRADIENT_RULE_)
#undef GRADIENT_RULE_

#endif
