/*
 * update_internal.h - classes of parameters with equal traces: shared by update.c, update_class.c
 * and update_kernel.c.
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
    const optimizer_trace **trace; /* by parameter: its trace; constants may differ               */
    int first;                   /* index of the first parameter in tensor slots                  */
    int64_t *start, *length;
    void **table;                /* by op: its numbers per tensor, or NULL                        */
    bool *ready;                 /* by op: an earlier kernel has computed the table               */
    int index;
} update_class;

/* update_class.c: make the classes, tensor slot indices, slots and averages. */
pons_status update_classes_make(const update_settings *u, update_class **classes, int *class_count,
                                pons_error *err);
/* update_kernel.c: make the kernels of one class. */
pons_status update_class_kernels(update_class *c, update_calls *out, pons_error *err);
/* update.c: append a call. */
void update_call_add(const update_settings *u, update_calls *out, map_builder_call *call);
/*
 * The product of 'check' with 0 x 'written' x 'read'; check = -1: a new check of these two values.
 */
int update_check_value(map_builder *m, int check, int written, int read);
/* Reserve the checks of 'count' tensors, and return their operand. */
map_builder_operand update_check_take(const update_settings *u, int count,
                                      storage_entry *const *tensor);

#endif
