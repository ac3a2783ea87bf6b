/*
 * program.h - a compiled graph: a flat array of prepared calls in four sections (R8).
 *
 * Reference execution is a program on the reference device (reference/reference.h).
 */
#ifndef CORE_GRAPH_PROGRAM_PROGRAM_H
#define CORE_GRAPH_PROGRAM_PROGRAM_H

#include "graph/optimizer/loss_scaling.h"
#include "graph/passes/precision.h"
#include "graph/program/program_testing.h"
#include "graph/storage/storage.h"

typedef struct program program;

/*
 * The collective that joins the replicas of a step, for gradient buckets (R8) and for sums inside
 * their graphs (R10). Each
 * replica has its own. The programs are equal, so all replicas start the same sums in the same
 * order. 'start' adds up 'buffer' (f32, or f64 on a wide device) over the replicas in place, and
 * may return before the sum is complete. 'wait', on the same thread, returns when it is complete,
 * or with the error. No other code uses the buffer in between; several sums may be pending.
 */
typedef struct program_collective {
    int count, rank;          /* replicas, and the number of this one                             */
    void *context;
    pons_status (*start)(void *context, void *buffer, int64_t count, pons_type type,
                         void **pending, pons_error *err);
    pons_status (*wait)(void *context, void *pending, pons_error *err);
    /*
     * The time at which the sum of the last 'wait' was complete, in seconds of CLOCK_MONOTONIC.
     * NULL: it is unknown, at the latest when 'wait' returned.
     */
    double (*ended)(void *context);
    /*
     * The stream that runs the sum, if 'start' also takes device memory that is not host memory.
     * NULL: buffers are host memory.
     */
    void *stream;
} program_collective;

typedef struct program_settings {
    precision precision;      /* resolved: never AUTO                                             */
    bool recompute;           /* [train] recompute: keep only the tensors at block borders (R14)  */
    bool fill_nan;            /* --debug: memory of the arena becomes NaN after its last use      */
    program_testing testing;
    int micro_batches;        /* M                                                                */
    int accumulate;           /* of this replica                                                  */
    double clip_norm;         /* 0: off                                                           */
    double ema_decay;         /* 0: off                                                           */
    loss_scaling scaling;     /* interval 0: LOSS_SCALING_DEFAULT                                 */
    const pons_optimizer_operations *optimizer; /* NULL: no update section (evaluate)             */
    const void *optimizer_config;
    const program_collective *collective; /* NULL: one replica. Lives as long as the program      */
    /* Bytes of a gradient bucket, which is summed over replicas in one piece. */
    size_t bucket;
    uint64_t seed;
} program_settings;

/* ---- compile --------------------------------------------------------------------------------- */

/*
 * Compile 'g'. For training 'loss' is a node with one element; its gradients, their accumulation,
 * the update and the states are added here. Outputs are nodes whose values the host reads. The
 * graph belongs to the program after this call, even on failure.
 */
pons_status program_new(storage *s, const device *d, pons_graph *g, pons_node *loss,
                        int output_count, pons_node *const *output,
                        const program_settings *settings, program **out, pons_error *err);
void program_free(program *p);

/* ---- run ------------------------------------------------------------------------------------- */

/*
 * The dense host memory of input 'name', to be requested and filled before each micro-batch; NULL:
 * there is no such input. '*tensor' receives type and shape unless 'tensor' is NULL.
 */
void *program_input(program *p, const char *name, pons_tensor *tensor);
/*
 * Let the program read input 'name' from 'memory', on a device with host memory. The memory is
 * dense and at a multiple of 64 bytes. It is used by the next runs, until other memory is bound or
 * program_input is called for the input. It may change or be freed when a run has returned. False:
 * there is no such input.
 */
bool program_bind_external(program *p, const char *name, const void *memory);
/*
 * Bind device memory to the resident leaf 'name', between runs. The memory lives until other memory
 * is bound, or as long as the program. A name that no kernel reads is ignored.
 */
void program_bind_resident(program *p, const char *name, void *memory);
/* Allocate the memory of the arena early, before other users of the device. */
pons_status program_settle(program *p, pons_error *err);
/*
 * The next two return dense host memory, valid until the next run or the next call of either. NULL:
 * there is no memory for it, or the device does not answer.
 *
 * Output 'index', after program_evaluate or program_micro.
 */
const void *program_output(program *p, int index, pons_tensor *tensor);
/*
 * The accumulated gradient of a parameter after a step: a sum over micro-batches, unclipped
 * (tests).
 */
const void *program_gradient(program *p, const char *name);

/* Run an evaluate program: begin (once after weights changed) and micro. */
pons_status program_evaluate(program *p, pons_error *err);
/*
 * The same, but a device with memory of its own only starts it. The inputs may be filled again;
 * later reads of device memory wait for the run.
 */
pons_status program_evaluate_ahead(program *p, pons_error *err);
/* The step and micro-batch of R5 for random numbers of later evaluations; 0 and 0 at first. */
void program_set_sample(program *p, uint64_t sample, uint64_t batch);
void program_weights_changed(program *p);

/*
 * A training step: begin, micro for each of 'accumulate' micro-batches, then finish, which is end
 * and result. On a device with memory of its own only 'result' waits for the computation. Between
 * 'end' and 'result' the inputs of the next micro-batch may be filled and sent. The result must be
 * read before the next step ends. 'step' and 'micro_batch' are the numbers of R5, from 0; 'lr' is
 * the learning rate of the step.
 */
typedef struct step_result {
    double loss, grad_norm;   /* mean over micro-batches; before clipping                         */
    /*
     * False: gradient, loss or a contribution to a state is not finite, and only the scale has
     * changed.
     */
    bool applied;
    /*
     * First parameter or state for which the update has read or written a number that is not finite
     * (slots and average included); NULL: none.
     */
    const char *nonfinite;
    double scale;             /* scale of the loss after the step; 1 without scaling              */
    /*
     * Seconds of this process; until the sections are queued, on a device with memory of its own.
     */
    double reduce_seconds, update_seconds;
} step_result;

pons_status program_step_begin(program *p, uint64_t step, pons_error *err);
pons_status program_micro(program *p, uint64_t micro_batch, pons_error *err);
/* Wait until the sums over replicas have ended. program_step_end calls it. */
pons_status program_step_wait(program *p, pons_error *err);
/* Send the inputs for the next program_micro. Nothing happens in host memory. */
pons_status program_send(program *p, uint64_t step, uint64_t micro_batch, pons_error *err);
pons_status program_step_end(program *p, double lr, pons_error *err);
pons_status program_step_result(program *p, step_result *result, pons_error *err);
pons_status program_step_finish(program *p, double lr, step_result *result, pons_error *err);

/* A tensor and its index in program order, which the replicas of a step compare. */
typedef struct program_nonfinite {
    const char *name;         /* owned by the program; NULL: all tensors are finite               */
    int index;                /* -1: an input, parameter or state                                 */
} program_nonfinite;

/*
 * Find the first tensor that is not finite in a micro-batch of the last step, by running it again.
 * The caller has filled its inputs again. Replicas whose graphs have sums over replicas call it
 * together.
 */
pons_status program_find_nonfinite(program *p, uint64_t micro_batch, program_nonfinite *found,
                                   pons_error *err);

#endif
