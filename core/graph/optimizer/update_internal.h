/*
 * update_internal.h - parameters whose recipes are equal: what update.c, update_class.c and
 * update_kernel.c share.
 */
#ifndef CORE_GRAPH_OPTIMIZER_UPDATE_INTERNAL_H
#define CORE_GRAPH_OPTIMIZER_UPDATE_INTERNAL_H

#include "graph/optimizer/optimizer_trace.h"
#include "graph/optimizer/update.h"

typedef struct update_class {
    const update_settings *settings;
    storage_block *block;
    void *gradient;
    int count;                   /* parameters                                                    */
    storage_entry **parameter;
    const recipe **recipe;       /* equal but for constants                                       */
    int first;                   /* place of its first parameter in tensor slots                  */
    int64_t *start, *length;
    void **table;                /* by term: its numbers per tensor, or NULL                      */
    bool *ready;                 /* by term: the table has been computed by an earlier kernel     */
    int index;
} update_class;

/* update_class.c: the classes, places in tensor slots, and memory for slots and averages. */
pons_status update_classes_make(const update_settings *u, update_class **classes, int *class_count,
                                pons_error *err);
/* update_kernel.c: the kernels of one class. */
pons_status update_class_kernels(update_class *c, update_calls *out, pons_error *err);
/* update.c */
void update_call_add(const update_settings *u, update_calls *out, formula_call *call);
/* 'check', and one more value that is 'written' where another was 'read'; check -1: the first. */
int update_check_value(formula *f, int check, int written, int read);
/* Where the checks of the next 'count' tensors go. */
formula_operand update_check_take(const update_settings *u, int count,
                                  storage_entry *const *tensor);

#endif
