/*
 * lower.h - turn expressions (nodes) into the values of a map program.
 *
 * The fuse pass lowers its groups with it. The caller's 'leaf' decides what is read from memory and
 * where; everything else becomes values.
 */
#ifndef CORE_GRAPH_PASSES_FUSE_LOWER_H
#define CORE_GRAPH_PASSES_FUSE_LOWER_H

#include "base/arena.h"
#include "graph/ir/node.h"

typedef struct lowering lowering;

/*
 * Whether 'x', read by something of shape 'at', comes from memory; then *load says from where
 * (strides by the axes of lowering_space, before collapsing). Otherwise x is lowered in turn.
 */
typedef bool (*lowering_leaf)(void *context, const pons_node *x, pons_shape at, pons_operand *load);

struct lowering {
    arena *arena;           /* the arrays of the finished program live here                       */
    lowering_leaf leaf;
    void *context;
    pons_map map;           /* set axis_count, extent, channels, segment_* before the first value */
    pons_operand *load;
    pons_value *value;
    pons_store *store;
    pons_reduction *reduction;
    int load_room, value_room, store_room, reduction_room;
    int *value_of;          /* by node number: value + 1; load values are found by operand        */
};

/* One axis for each axis of 's' that is longer than 1; at least one axis. */
pons_shape shape_squeeze(pons_shape s);
int64_t shape_stride(pons_shape s, int axis); /* of a dense tensor, in elements */
/* Strides of a dense tensor of shape 'x' (of at most the rank of 'at') over the squeezed 'at'. */
void operand_strides(pons_shape x, pons_shape at, int64_t *stride);

void lowering_init(lowering *l, arena *a, int node_count, lowering_leaf leaf, void *context);
/* The number of the value that 'x' has; appended with all it needs unless it is there already. */
int lowering_value(lowering *l, const pons_node *x, pons_shape at);
/* Values with one number per channel, whatever 'value' is (channel form). */
int lowering_wide(lowering *l, int value);
void lowering_store(lowering *l, int value, const pons_operand *to);
void lowering_reduce(lowering *l, pons_reduction_kind kind, int value, int groups,
                     const pons_operand *to, const pons_operand *second);
/* Largest number of values (constants apart) that are alive at once. */
int lowering_pressure(const lowering *l);
/* Merge axes where all operands allow it, and hand the program out. */
const pons_map *lowering_finish(lowering *l);

#endif
