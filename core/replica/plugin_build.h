/*
 * plugin_build.h - the nodes that model and loss plugins make, and what must hold of them.
 */
#ifndef CORE_REPLICA_PLUGIN_BUILD_H
#define CORE_REPLICA_PLUGIN_BUILD_H

#include "plugin/plugin_load.h"

#include <pons/loss.h>
#include <pons/model.h>

/*
 * Ask a model for its outputs on 'inputs', of which the first is the image [N, D, H, W, C]. Output
 * 0 has the shape of the image with a channel for each class, none is missing.
 */
pons_status plugin_build_model(const plugin *p, const void *config, const pons_task *task,
                               const pons_inputs *inputs, pons_graph *g, pons_outputs *out,
                               pons_error *err);
/* Ask a loss for its value, which is one number. */
pons_status plugin_build_loss(const plugin *p, const void *config, const pons_task *task,
                              pons_node *logits, const pons_target *target, pons_graph *g,
                              pons_node **out, pons_error *err);

#endif
