/*
 * optimizer.h - an optimizer plugin: parameter and gradient in, assigns out.
 *
 * 'update' is called once per parameter and adds nodes; equal expressions of all parameters become
 * one kernel over one flat buffer. Slots start at 0. When the gradient is not finite the core keeps
 * every old value, so no plugin tests for it.
 */
#ifndef CORE_PONS_OPTIMIZER_H
#define CORE_PONS_OPTIMIZER_H

#include <pons/graph.h>

PONS_C_BEGIN

typedef enum pons_slot_kind {
    PONS_SLOT_ELEMENT = 1, /* one number per element, the parameter's shape                       */
    PONS_SLOT_TENSOR       /* one number per parameter, rank 0                                    */
} pons_slot_kind;

typedef struct pons_slot {
    const char *name; /* part of the checkpoint's tensor name                                     */
    pons_slot_kind kind;
} pons_slot;

#define PONS_SLOTS_END { NULL, PONS_SLOT_ELEMENT }
#define PONS_SLOTS_MAX 8

typedef struct pons_parameter {
    uint32_t size;
    const char *name;
    pons_role role;
    pons_shape shape;
    pons_node *value;    /* before the step                                                       */
    pons_node *gradient; /* of the step's objective: mean over micro-batches, unscaled, clipped   */
    pons_node *lr;       /* rank 0                                                                */
    pons_node *step;     /* rank 0, f32: applied updates including this one                       */
    pons_node *slot[PONS_SLOTS_MAX]; /* in the order of the slot table                            */
} pons_parameter;

typedef struct pons_optimizer_operations {
    pons_status (*check)(const void *config, pons_error *err); /* may be NULL; see plugin.h       */
    const pons_slot *slots;
    pons_status (*update)(pons_graph *g, const void *config, const pons_parameter *p,
                          pons_error *err);
} pons_optimizer_operations;

#define PONS_OPTIMIZER(NAME, VERSION, SUMMARY, OPTIONS, OPERATIONS)                               \
    PONS_PLUGIN_DEFINE_(PONS_KIND_OPTIMIZER, pons_optimizer_operations, NAME, VERSION, SUMMARY,   \
                        OPERATIONS, OPTIONS)

PONS_C_END

#endif
