/*
 * update.h - the update section: an optimizer's expressions over flat buffers (R9, R17).
 */
#ifndef CORE_GRAPH_OPTIMIZER_UPDATE_H
#define CORE_GRAPH_OPTIMIZER_UPDATE_H

#include "graph/optimizer/map_builder.h"
#include "graph/storage/storage.h"
#include "graph/optimizer/table_pool.h"

/* Numbers of a step that live on the device, one each. */
typedef enum step_number {
    STEP_LR = 0,  /* the host writes it before a step                                             */
    STEP_SQUARES, /* sum of squares of the mean gradient                                          */
    STEP_NORM,
    STEP_UNSOUND, /* how many contributions to states, or losses, are not finite                  */
    STEP_OK,      /* 1 if the norm is finite and nothing is unsound                               */
    STEP_FACTOR,  /* from a folded gradient to a clipped one: 1/M, clipping, 1/scale              */
    STEP_COUNT,   /* updates applied, including this one                                          */
    STEP_LOSS,    /* mean over micro-batches                                                      */
    STEP_SCALE,   /* of the next loss, where losses are scaled                                    */
    STEP_NUMBER_COUNT
} step_number;

/*
 * A number for each tensor that a kernel updates: 0, and not a number where something that the
 * kernel has read of it or written is not finite.
 */
typedef struct update_check {
    void *number;
    const char **name;             /* of the tensor, by number                                    */
    int count;
} update_check;

/* What the section is made from. */
typedef struct update_settings {
    storage *storage;
    struct arena *arena;           /* of the program                                              */
    table_pool *pool;
    void *const *number;           /* by step_number                                              */
    int micro_batches;             /* M                                                           */
    double clip_norm, ema_decay;
    bool scaled;                   /* gradients are of the loss times the scale (fp16)            */
    const pons_optimizer_operations *optimizer;
    const void *config;
    int count;                     /* parameters that have a gradient                             */
    storage_entry *const *parameter;
    void *const *gradient;         /* gradient[i]: of the whole block that parameter[i] lies in   */
    void *gradients;               /* all gradients, folded; gaps are 0                           */
    int64_t gradient_count;        /* elements, gaps included                                     */
    int state_count;               /* states that are contributed to                              */
    storage_entry *const *state;
    void *const *contribution;     /* of the whole block that state[i] lies in                    */
    const double *rate;
    void *sums;                    /* folded: contributions of all state blocks, and the loss     */
    int64_t sum_count;
    void *loss;
    update_check *check;
} update_settings;

/* Calls in the order they run. */
typedef struct update_calls {
    int reduce_count, update_count, room;
    formula_call **reduce, **update;
} update_calls;

pons_status update_make(const update_settings *u, update_calls *out, pons_error *err);

#endif
