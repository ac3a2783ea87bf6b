/*
 * diffusion_nodes.h - the row of task = synthesis in task_nodes.c.
 */
#ifndef CORE_REPLICA_DIFFUSION_NODES_H
#define CORE_REPLICA_DIFFUSION_NODES_H

#include "replica/task_nodes.h"

/*
 * Each sample draws one of e->targets, the channels that may be its target. The first N / 2 + 1
 * samples draw a timestep of the schedule; each of the others has the timestep opposite to that of
 * the sample N / 2 + 1 places before it. The drawn channel receives the target with noise of that
 * timestep, and the output approaches this noise.
 */
pons_status diffusion_nodes_train(const experiment *e, pons_graph *g, pons_node *image,
                                  pons_node *label, task_inputs *out, pons_error *err);
pons_status diffusion_nodes_evaluate(const experiment *e, pons_graph *g, pons_node *image,
                                     task_inputs *out, pons_error *err);

#endif
