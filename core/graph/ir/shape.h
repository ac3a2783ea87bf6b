/*
 * shape.h - shapes of tensors and sizes of element types.
 */
#ifndef CORE_GRAPH_IR_SHAPE_H
#define CORE_GRAPH_IR_SHAPE_H

#include "graph/ir/node.h"

int64_t shape_count(pons_shape s); /* elements */
bool shape_equal(pons_shape a, pons_shape b);
bool shape_broadcast(pons_shape a, pons_shape b, pons_shape *both);
size_t type_size(pons_type type);
const char *shape_text(pons_shape s, char *text, size_t size); /* "[2, 96, 96, 96, 16]"           */

#endif
