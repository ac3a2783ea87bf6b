/*
 * optimizer_trace.h - the operations of an optimizer on one parameter, without the parameter's name
 * and shape.
 *
 * Each value has a span: one number per element, one per tensor, or one for all. The span follows
 * from the leaves, not from shapes, as a slope has shape [1]. Parameters with equal traces share
 * kernels; constants may differ between them.
 */
#ifndef CORE_GRAPH_OPTIMIZER_OPTIMIZER_TRACE_H
#define CORE_GRAPH_OPTIMIZER_OPTIMIZER_TRACE_H

#include "graph/optimizer/update.h"

typedef enum span { SPAN_ALL = 0, SPAN_TENSOR, SPAN_ELEMENT } span;

/* Operations beside pons_map_operation. */
enum {
    TRACE_PARAMETER = PONS_MAP_OPERATION_COUNT,
    TRACE_GRADIENT, /* the accumulated gradient, not yet the mean                                 */
    TRACE_SLOT,     /* detail: index of the slot                                                  */
    TRACE_EMA,
    TRACE_NUMBER,   /* detail: step_number                                                        */
    TRACE_CONSTANT,
    TRACE_SUM,      /* over the elements of the tensor                                            */
    TRACE_MAXIMUM,
    TRACE_MINIMUM
};

typedef struct trace_op {
    int operation;
    span span;
    int depth;       /* reductions on the path to the leaves                                      */
    int argument[3];
    int detail;
    double number;   /* CONSTANT; no part of a comparison                                         */
} trace_op;

enum { TRACE_TARGET_PARAMETER = PONS_SLOTS_MAX, TRACE_TARGET_EMA, TRACE_TARGET_COUNT };

typedef struct optimizer_trace {
    int count, room;
    trace_op *op;
    int target[TRACE_TARGET_COUNT]; /* by target: the op whose value it gets; -1: none            */
} optimizer_trace;

/* Record the update of parameter 'e'. The ops live in 'a'. */
pons_status optimizer_trace_make(struct arena *a, const storage_entry *e, const update_settings *u,
                                 optimizer_trace *out, pons_error *err);
bool optimizer_trace_equal(const optimizer_trace *a, const optimizer_trace *b);

#endif
