/*
 * update.h - the norm and update sections: the numbers of a step, and an optimizer's expressions
 * over flat buffers (R9, R17).
 */
#ifndef CORE_GRAPH_OPTIMIZER_UPDATE_H
#define CORE_GRAPH_OPTIMIZER_UPDATE_H

#include "graph/optimizer/loss_scaling.h"
#include "graph/optimizer/map_builder.h"
#include "graph/storage/storage.h"
#include "graph/optimizer/table_pool.h"

/* Numbers of a step in device memory. */
typedef enum step_number {
    STEP_LR = 0,  /* learning rate, written by the host before a step                             */
    STEP_SQUARES, /* sum of squares of the mean gradient                                          */
    STEP_NORM,
    STEP_NONFINITE, /* count of contributions to states, and losses, that are not finite          */
    STEP_OK,      /* 1 if the norm is finite and STEP_NONFINITE is 0                              */
    STEP_FACTOR,  /* from an accumulated gradient to a clipped one: 1/M, clipping, 1/scale        */
    STEP_COUNT,   /* applied updates, with this one                                               */
    STEP_LOSS,    /* mean over micro-batches                                                      */
    STEP_SCALE,   /* scale of the next loss (fp16)                                                */
    STEP_NUMBER_COUNT
} step_number;

/*
 * A number for each tensor that a kernel updates: 0 if all numbers that the kernel has read or
 * written of it are finite, else NaN.
 */
typedef struct update_check {
    void *number;
    const char **name;             /* by number: the tensor's name                                */
    int count;
} update_check;

/* The inputs of update_make. */
typedef struct update_settings {
    storage *storage;
    struct arena *arena;           /* the program's arena                                         */
    table_pool *pool;
    void *const *number;           /* by step_number: its address                                 */
    int micro_batches;             /* M                                                           */
    double clip_norm, ema_decay;
    bool scaled;                   /* gradients are those of the scaled loss (fp16)               */
    loss_scaling scaling;
    const pons_optimizer_operations *optimizer;
    const void *config;
    int count;                     /* parameters with a gradient                                  */
    storage_entry *const *parameter;
    void *const *gradient;         /* by parameter: the gradients of its whole block              */
    void *gradients;               /* all accumulated gradients; gaps are 0                       */
    int64_t gradient_count;        /* elements, with gaps                                         */
    int state_count;               /* states with a contribution                                  */
    storage_entry *const *state;
    void *const *contribution;     /* by state: the contributions to its whole block              */
    const double *rate;
    /* The accumulated contributions to all state blocks, and the loss. */
    void *sums;
    int64_t sum_count;
    void *loss;
    update_check *check;
} update_settings;

/* Calls in running order. */
typedef struct update_calls {
    int reduce_count, update_count, room;
    map_builder_call **reduce, **update;
} update_calls;

pons_status update_make(const update_settings *u, update_calls *out, pons_error *err);

#endif
