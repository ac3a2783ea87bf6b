/*
 * network_boxes.h - the network that predicts, as operations in boxes for viewers of graphs.
 *
 * The outer boxes are levels, which have one extent: "48x48x48" on the way down, and "up_48x48x48"
 * behind an operation that has enlarged a smaller one. Inside them are modules, by the names of
 * their parameters, in boxes of their own where they part: "48x48x48/model.1/conv/convolution" if
 * there is also a "model.1.residual". An operation that joins modules, such as the sum of a
 * residual unit, is in the part that their names have in common.
 */
#ifndef CORE_REPORT_SINKS_NETWORK_BOXES_H
#define CORE_REPORT_SINKS_NETWORK_BOXES_H

#include "base/arena.h"
#include "experiment/experiment.h"
#include "graph/ir/node.h"

#include <pons/sink.h>

/* Nodes that a viewer shows without delay. */
enum { NETWORK_BOXES_MAX = 4096 };

/*
 * The operations that 'output' needs, with parameters and states. Constants are left out. Where
 * there are more than 'limit', each module is one node, "level/module"; where these are more than
 * 'limit', count is 0. Everything lies in 'memory'.
 */
void network_boxes_of(const pons_node *output, int limit, arena *memory, pons_network *out);
/* The same of an experiment's network, for a micro-batch of patches. */
pons_status network_boxes_make(const experiment *e, arena *memory, pons_network *out,
                               pons_error *err);

#endif
