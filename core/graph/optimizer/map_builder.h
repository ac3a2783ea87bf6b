/*
 * map_builder.h - write a map by hand, over memory with known addresses.
 *
 * The norm and update sections have no nodes in the step's graph: their operands are the flat
 * buffers of the storage. A builder collects loads, values, stores and reductions, and becomes a
 * request with the addresses of its tensors. Values are numbers, as in pons_map.
 */
#ifndef CORE_GRAPH_OPTIMIZER_MAP_BUILDER_H
#define CORE_GRAPH_OPTIMIZER_MAP_BUILDER_H

#include <pons/device.h>

struct arena;

typedef struct map_builder_list { int count, room; } map_builder_list;

typedef struct map_builder {
    struct arena *arena;
    pons_type real;              /* type of all operands                                          */
    pons_map map;                /* map_builder_finish fills its lists                            */
    pons_operand *load;
    pons_value *value;
    pons_store *store;
    pons_reduction *reduction;
    pons_tensor *input, *output;
    void **input_memory, **output_memory;
    map_builder_list loads, values, stores, reductions, inputs, outputs;
} map_builder;

/* A request and the addresses of its tensors. */
typedef struct map_builder_call {
    pons_request request;
    void **input, **output;
    uint64_t flop;
} map_builder_call;

/* Memory as an operand: 'count' numbers from 'memory'. */
typedef struct map_builder_operand {
    void *memory;
    int64_t count;
    pons_index_space index;            /* SPACE: dense over the axes of the map                   */
} map_builder_operand;

/* Begin a map over 'count' consecutive points. */
void map_builder_begin(map_builder *m, struct arena *a, pons_type real, int64_t count);
/* Begin a map over segments of flat buffers. */
void map_builder_begin_ragged(map_builder *m, struct arena *a, pons_type real,
                              int64_t segment_count, const int64_t *start, const int64_t *length);
int map_builder_load(map_builder *m, map_builder_operand from);
int map_builder_constant(map_builder *m, double number);
/* Returns the value's number. Operations of fewer arguments ignore 'b' and 'c'. */
int map_builder_apply(map_builder *m, int operation, int a, int b, int c);
void map_builder_store(map_builder *m, int value, map_builder_operand to);
void map_builder_reduce(map_builder *m, pons_reduction_kind kind, int value,
                        map_builder_operand to);
/* The call lives in the arena of the builder. */
map_builder_call *map_builder_finish(map_builder *m, const char *name);

#endif
