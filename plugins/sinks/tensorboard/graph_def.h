/*
 * graph_def.h - a network as TensorBoard's GraphDef (compat/proto/graph.proto, node_def.proto).
 */
#ifndef PLUGINS_SINKS_TENSORBOARD_GRAPH_DEF_H
#define PLUGINS_SINKS_TENSORBOARD_GRAPH_DEF_H

#include "sinks/protobuf.h"

#include <pons/sink.h>

/* Append the fields of a GraphDef: each node with its name, operation, inputs and shape. */
void graph_def_put(message *graph, const pons_network *network);

#endif
