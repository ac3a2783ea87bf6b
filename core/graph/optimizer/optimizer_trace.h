/*
 * optimizer_trace.h - what an optimizer does to one parameter, free of the parameter's name and
 * shape.
 *
 * Each value has a span that follows from the leaves, never from shapes (a slope has shape [1]):
 * one number per element, per tensor, or one for all. Parameters with equal recipes share kernels;
 * constants may differ between them.
 */
#ifndef CORE_GRAPH_OPTIMIZER_OPTIMIZER_TRACE_H
#define CORE_GRAPH_OPTIMIZER_OPTIMIZER_TRACE_H

#include "graph/optimizer/update.h"

typedef enum span { SPAN_ALL = 0, SPAN_TENSOR, SPAN_ELEMENT } span;

/* Operations of terms besides pons_map_operation. */
enum {
    TERM_PARAMETER = PONS_MAP_OPERATION_COUNT,
    TERM_GRADIENT, /* as folded: not yet the mean                                                 */
    TERM_SLOT,     /* detail: index                                                               */
    TERM_EMA,
    TERM_NUMBER,   /* detail: step_number                                                         */
    TERM_CONSTANT,
    TERM_SUM,      /* over the elements of the tensor                                             */
    TERM_MAXIMUM,
    TERM_MINIMUM
};

typedef struct term {
    int operation;
    span span;
    int depth;       /* reductions below it                                                       */
    int argument[3];
    int detail;
    double number;   /* CONSTANT; not compared                                                    */
} term;

enum { RECIPE_VALUE = PONS_SLOTS_MAX, RECIPE_EMA, RECIPE_TARGETS };

typedef struct recipe {
    int count, room;
    term *term;
    int target[RECIPE_TARGETS]; /* the term that a slot, the parameter or the average becomes, -1 */
} recipe;

/* Ask the optimizer about parameter 'e'; terms live in 'a'. */
pons_status recipe_make(struct arena *a, const storage_entry *e, const update_settings *u,
                        recipe *out, pons_error *err);
bool recipe_equal(const recipe *a, const recipe *b);

#endif
