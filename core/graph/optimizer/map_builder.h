/*
 * map_builder.h - write a map by hand, over memory with known addresses.
 *
 * The reduce and update sections are not made from nodes of the step's graph: their operands are
 * the flat buffers of the storage. A formula collects loads, values, stores and reductions and
 * becomes a request with the addresses of its tensors. Values are numbers as in pons_map.
 */
#ifndef CORE_GRAPH_OPTIMIZER_MAP_BUILDER_H
#define CORE_GRAPH_OPTIMIZER_MAP_BUILDER_H

#include <pons/device.h>

struct arena;

typedef struct formula_list { int count, room; } formula_list;

typedef struct formula {
    struct arena *arena;
    pons_type real;              /* of every operand                                              */
    pons_map map;                /* lists filled by formula_finish                                */
    pons_operand *load;
    pons_value *value;
    pons_store *store;
    pons_reduction *reduction;
    pons_tensor *input, *output;
    void **input_memory, **output_memory;
    formula_list loads, values, stores, reductions, inputs, outputs;
} formula;

/* A request and where its tensors lie. */
typedef struct formula_call {
    pons_request request;
    void **input, **output;
    uint64_t flop;
} formula_call;

/* Memory as an operand: 'count' numbers from 'memory'. */
typedef struct formula_operand {
    void *memory;
    int64_t count;
    pons_index_space index;            /* SPACE: dense over the axes of 'extent'                  */
} formula_operand;

/* Over 'count' points in a row. */
void formula_begin(formula *f, struct arena *a, pons_type real, int64_t count);
/* Over segments of flat buffers. */
void formula_begin_ragged(formula *f, struct arena *a, pons_type real, int64_t segment_count,
                          const int64_t *start, const int64_t *length);
int formula_load(formula *f, formula_operand from);
int formula_constant(formula *f, double number);
/* b and c are not read by operations of fewer arguments. */
int formula_map(formula *f, int operation, int a, int b, int c);
void formula_store(formula *f, int value, formula_operand to);
void formula_reduce(formula *f, pons_reduction_kind kind, int value, formula_operand to);
/* Everything lives in the arena given at the begin. */
formula_call *formula_finish(formula *f, const char *name);

#endif
