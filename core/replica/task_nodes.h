/*
 * task_nodes.h - the part of a training graph between the patches and the network, and the inputs
 * of a network: one row a task.
 */
#ifndef CORE_REPLICA_TASK_NODES_H
#define CORE_REPLICA_TASK_NODES_H

#include "experiment/experiment.h"

enum { TASK_INPUTS_MAX = 2 };

/* The inputs of the network, the image first, and the target that its outputs approach. */
typedef struct task_inputs {
    int count;
    pons_named_node item[TASK_INPUTS_MAX];
    pons_node *target;
} task_inputs;

typedef struct task_nodes {
    bool labels;              /* the graph reads the target part of a micro-batch                 */
    /* 'image' is [N, D, H, W, channels]; 'label' is NULL without 'labels'. */
    pons_status (*train)(const experiment *e, pons_graph *g, pons_node *image, pons_node *label,
                         task_inputs *out, pons_error *err);
    /* The inputs beside 'image' are inputs of the program, of the same names. */
    pons_status (*evaluate)(const experiment *e, pons_graph *g, pons_node *image,
                            task_inputs *out, pons_error *err);
} task_nodes;

const task_nodes *task_nodes_of(const experiment *e);

#endif
