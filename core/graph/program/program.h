/*
 * program.h - a compiled graph: a flat array of prepared calls in four sections (R8).
 *
 * Reference execution is a program on the reference device (reference/reference.h).
 */
#ifndef CORE_GRAPH_PROGRAM_PROGRAM_H
#define CORE_GRAPH_PROGRAM_PROGRAM_H

#include "graph/passes/precision.h"
#include "graph/storage/storage.h"

typedef struct program program;

/*
 * What joins the replicas of a step, for the sums inside their graphs (R10). Each replica gives its
 * own; the programs are the same, so that all start the same sums in the same order. 'start' adds
 * up 'buffer' (f32, or f64 on a wide device) over the replicas in place: it may return before that
 * is done, and 'wait', on the same thread, returns when it is, or with what went wrong. Between
 * both nobody touches the buffer; several sums may be under way.
 */
typedef struct program_collective {
    int count, rank;          /* replicas, and which of them this one is                          */
    void *context;
    pons_status (*start)(void *context, void *buffer, int64_t count, pons_type type,
                         void **pending, pons_error *err);
    pons_status (*wait)(void *context, void *pending, pons_error *err);
    /* When the sum that 'wait' last returned for was done, in seconds of CLOCK_MONOTONIC; NULL:  */
    /* it is not known, at the latest when 'wait' returned.                                       */
    double (*ended)(void *context);
    /*
     * Where 'start' takes memory of a device that is not host memory, too: the stream on which the
     * sum is put, behind what is there. NULL: buffers are host memory.
     */
    void *stream;
} program_collective;

typedef struct program_settings {
    precision precision;      /* resolved: never AUTO                                             */
    bool recompute;           /* [train] recompute: keep only what R14 must keep at block borders */
    bool no_fuse, no_reuse, poison; /* test switches: each node its own kernel; no memory reuse;  */
                              /* fill freed intervals with NaN                                    */
    int micro_batches;        /* M                                                                */
    int accumulate;           /* of this replica                                                  */
    double clip_norm;         /* 0: off                                                           */
    double ema_decay;         /* 0: off                                                           */
    const pons_optimizer_operations *optimizer; /* NULL: no update sections (evaluate)            */
    const void *optimizer_config;
    const program_collective *collective; /* NULL: one replica. Lives as long as the program      */
    size_t bucket;            /* bytes of gradients that are summed over replicas in one piece    */
    uint64_t seed;
} program_settings;

/* ---- compile --------------------------------------------------------------------------------- */

/*
 * Compile 'g'. For training 'loss' is a node with one element: its gradient, the folding, the
 * update and the states are added here. Outputs are nodes whose values the host wants to read.
 * The graph belongs to the program from now on, also on failure.
 */
pons_status program_new(storage *s, const device *d, pons_graph *g, pons_node *loss,
                        int output_count, pons_node *const *output,
                        const program_settings *settings, program **out, pons_error *err);
void program_free(program *p);

/* ---- run ------------------------------------------------------------------------------------- */

/*
 * Host memory of input 'name' (NULL: there is none), dense, asked for and filled before each
 * micro-batch. '*tensor', if asked for, is its type and shape.
 */
void *program_input(program *p, const char *name, pons_tensor *tensor);
/*
 * On a device with host memory the program reads input 'name' from 'memory', dense, at a multiple
 * of 64 bytes, in what runs next, until it is lent another or program_input asks for the input. It
 * may change or go when what was run has returned. False: there is no such input.
 */
bool program_lend(program *p, const char *name, const void *memory);
/*
 * What 'name', a held leaf, is from now on: memory of the device, which lives until it is other
 * memory, or as long as the program runs. Between runs; nothing happens where no kernel reads it.
 */
void program_hold(program *p, const char *name, void *memory);
/* Take the memory that running needs, before anything else takes it. */
pons_status program_settle(program *p, pons_error *err);
/*
 * What follows is host memory, dense, and valid until the next run and the next such call; NULL:
 * there is no memory for it, or the device does not answer.
 *
 * Output i, after program_evaluate or program_micro.
 */
const void *program_output(program *p, int index, pons_tensor *tensor);
/* The folded gradient of a parameter after a step: a sum over micro-batches, unclipped (tests). */
const void *program_gradient(program *p, const char *name);

/* Evaluate programs: begin (once after weights changed) and micro. */
pons_status program_evaluate(program *p, pons_error *err);
/*
 * The same, but on a device with memory of its own it only begins: inputs may be filled in again,
 * and what reads the device's memory later waits for it.
 */
pons_status program_evaluate_ahead(program *p, pons_error *err);
void program_weights_changed(program *p);

/*
 * A training step: begin, then micro for each of 'accumulate' micro-batches, then finish: that is
 * end and result. On a device with memory of its own only 'result' waits for what is computed, and
 * between both the inputs of the micro-batch that comes next may be filled in and sent. The result
 * of a step must be asked for before the next step ends. 'step' and 'micro_batch' are the numbers
 * of R5, from 0; 'lr' is the rate of the step.
 */
typedef struct step_result {
    double loss, grad_norm;   /* mean over micro-batches; before clipping                         */
    bool applied;             /* false: gradient, loss or a contribution to a state is not        */
                              /* finite, and nothing was changed but the scale                    */
    const char *damaged;      /* a parameter or state of which, or of whose slots and average,    */
                              /* the update has found or left what is not finite; NULL: none      */
    double scale;             /* of the loss after the step; 1 where it is not scaled             */
    double reduce_seconds, update_seconds; /* of this process; on a device with memory of its own */
                              /* until the sections are in its queue                              */
} step_result;

pons_status program_step_begin(program *p, uint64_t step, pons_error *err);
pons_status program_micro(program *p, uint64_t micro_batch, pons_error *err);
/* Until the sums over replicas have ended; end does it where nobody has. */
pons_status program_step_wait(program *p, pons_error *err);
/* The next program_micro takes the inputs as they are now; nothing to do in host memory. */
pons_status program_send(program *p, uint64_t step, uint64_t micro_batch, pons_error *err);
pons_status program_step_end(program *p, double lr, pons_error *err);
pons_status program_step_result(program *p, step_result *result, pons_error *err);
pons_status program_step_finish(program *p, double lr, step_result *result, pons_error *err);

/* A tensor and its place in program order: replicas of a step compare theirs. */
typedef struct program_nonfinite {
    const char *name;         /* of the program, which owns it; NULL: there is none               */
    int place;                /* -1: an input, parameter or state                                 */
} program_nonfinite;

/*
 * The first tensor that is not finite in a micro-batch of the last step, which runs once more:
 * its inputs have been filled in again. Replicas whose graphs hold sums over replicas ask together.
 */
pons_status program_find_nonfinite(program *p, uint64_t micro_batch, program_nonfinite *found,
                                   pons_error *err);

#endif
