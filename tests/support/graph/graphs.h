/*
 * graphs.h - small graphs that several tests of the compiler share.
 */
#ifndef TESTS_GRAPHS_H
#define TESTS_GRAPHS_H

#include "graph/ir/node.h"
#include "graph/ir/shape.h"
#include "graph/program/plan.h"

#include <stdio.h>

pons_shape image_shape_of(int64_t n, int64_t d, int64_t h, int64_t w, int64_t c);

pons_node *graph_weight(pons_graph *g, const char *name, int64_t out, int64_t k, int64_t in);

pons_node *graph_vector(pons_graph *g, const char *name, pons_role role, int64_t count,
                        double value);

/* Convolution with bias, instance or batch norm with scale and shift, prelu. */
pons_node *graph_layer(pons_graph *g, pons_node *x, const char *name, int64_t out,
                       int stride, bool batch);

/* Soft dice and cross-entropy of softmax against labels, both means. */
pons_node *dice_ce(pons_graph *g, pons_node *logits, pons_node *label);

/* Print a plan, for a person who debugs an unexpected count. */
void plan_print(const plan *p, FILE *to);

#endif
