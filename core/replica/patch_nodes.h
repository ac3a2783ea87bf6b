/*
 * patch_nodes.h - the head of a training graph whose device cuts the patches ([data] cache =
 * device): from the cases that it holds to the image and the target.
 */
#ifndef CORE_REPLICA_PATCH_NODES_H
#define CORE_REPLICA_PATCH_NODES_H

#include "experiment/experiment.h"

#define PATCH_CASES "cases" /* the held leaf, see program_bind_resident                           */

/* Both in the shapes that the model and the loss expect; [N, e0, e1, e2, C] becomes 'shape'. */
pons_node *patch_nodes_image(const experiment *e, pons_graph *g, pons_shape shape,
                             pons_error *err);
pons_node *patch_nodes_target(const experiment *e, pons_graph *g, pons_shape shape,
                              pons_error *err);

#endif
