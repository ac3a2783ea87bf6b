/*
 * lower.h - lower expressions (nodes) to the values of a map program.
 *
 * The fuse pass lowers its units with it. The caller's 'leaf' decides which nodes are read from
 * memory, and where. All other nodes become values.
 */
#ifndef CORE_GRAPH_PASSES_FUSE_LOWER_H
#define CORE_GRAPH_PASSES_FUSE_LOWER_H

#include "base/arena.h"
#include "graph/ir/node.h"

typedef struct lowering lowering;

/*
 * Whether 'x' comes from memory for a reader of shape 'at'. True: *load is its operand, with
 * strides over the axes of the map before collapsing. False: 'x' is lowered in turn.
 */
typedef bool (*lowering_leaf)(void *context, const pons_node *x, pons_shape at, pons_operand *load);

struct lowering {
    arena *arena;           /* memory of the finished program                                     */
    lowering_leaf leaf;
    void *context;
    /* axis_count, extent, channels and segment_* are set before the first value. */
    pons_map map;
    pons_operand *load;
    pons_value *value;
    pons_store *store;
    pons_reduction *reduction;
    int load_room, value_room, store_room, reduction_room;
    int *value_of;          /* by node number: value + 1; loads are found by operand              */
};

/* 's' without axes of extent 1; at least one axis stays. */
pons_shape shape_squeeze(pons_shape s);
int64_t shape_stride(pons_shape s, int axis); /* of a dense tensor, in elements */
/* Strides of a dense tensor of shape 'x' (of at most the rank of 'at') over the squeezed 'at'. */
void operand_strides(pons_shape x, pons_shape at, int64_t *stride);

void lowering_init(lowering *l, arena *a, int node_count, lowering_leaf leaf, void *context);
/* The number of the value of 'x', which is appended with its arguments if it is new. */
int lowering_value(lowering *l, const pons_node *x, pons_shape at);
/* A value with one number per channel that equals 'value' (channel form). */
int lowering_per_channel(lowering *l, int value);
void lowering_store(lowering *l, int value, const pons_operand *to);
void lowering_reduce(lowering *l, pons_reduction_kind kind, int value, int groups,
                     const pons_operand *to, const pons_operand *second);
/* The largest number of values, without constants, that are alive at once. */
int lowering_pressure(const lowering *l);
/* Merge axes where all operands allow it, and return the program. */
const pons_map *lowering_finish(lowering *l);

#endif
