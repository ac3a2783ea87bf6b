/*
 * program.h - a compiled graph, and the memory of one replica that programs share.
 *
 * storage holds what lives longer than a step: parameters, states, optimizer slots, EMA, the fold
 * stack; all by name, in flat buffers (R17). A program is a flat array of prepared calls in four
 * sections (R8). Reference execution is a program on the reference device (reference.h).
 */
#ifndef CORE_GRAPH_PROGRAM_H
#define CORE_GRAPH_PROGRAM_H

#include <pons/device.h>

#include "graph/node.h"

typedef struct storage storage;
typedef struct program program;

/* An opened device: operations of a device plugin, or of the reference device. */
typedef struct device {
    const struct plugin *plugin; /* NULL: the reference                                           */
    const pons_device_operations *operations;
    void *handle;
    pons_device_facts facts;
    bool reference;           /* one kernel per node, no fusing                                   */
    bool wide;                /* reference only: f64 instead of f32. Its kernels read and write   */
                              /* the types that requests name: the program makes f32 nodes f64    */
} device;

/* reference.c: the oracle; 'wide' computes in double. */
void device_reference(device *d, bool wide);

typedef enum precision {
    PRECISION_AUTO = 0, PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16
} precision;

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

/* ---- storage --------------------------------------------------------------------------------- */

pons_status storage_new(const device *d, storage **out, pons_error *err);
void storage_free(storage *s);
/* Draw initial values of everything that no checkpoint has filled (R29). */
pons_status storage_initialise(storage *s, uint64_t seed, pons_error *err);

typedef enum storage_group {
    STORAGE_PARAMETER = 0, STORAGE_STATE, STORAGE_SLOT, STORAGE_EMA, STORAGE_GROUP_COUNT
} storage_group;

/* One named tensor, for checkpoints and tests. Slots are named 'PARAMETER.SLOT'. */
typedef struct storage_tensor {
    const char *name;
    storage_group group;
    pons_role role;
    pons_shape shape;         /* internal order: [O, kD, kH, kW, I]                               */
    void *memory;             /* f32 (f64 on a wide reference device), dense; host memory, which  */
                              /* holds the newest values until a program runs                     */
} storage_tensor;

int storage_count(const storage *s, storage_group group);
storage_tensor storage_item(const storage *s, storage_group group, int index);
/*
 * Look for the newest values on the device; what follows does it too, but cannot say why it did not
 * work: then tensors are NaN.
 */
pons_status storage_fetch(const storage *s, pons_error *err);
pons_type storage_type(const storage *s); /* of every tensor: f32, f64 on a wide device */
/* Device state of the update section (R9). */
typedef enum storage_number {
    STORAGE_APPLIED = 0,      /* updates applied (p->step)                                        */
    STORAGE_SCALE,            /* fp16: what the loss is multiplied by where gradients begin       */
    STORAGE_SOUND,            /* fp16: updates applied since the scale has changed                */
    STORAGE_NUMBER_COUNT
} storage_number;
double storage_get(const storage *s, storage_number n); /* NaN: the device does not answer        */
void storage_set(storage *s, storage_number n, double value);
/* Let programs read the averages instead of the weights, or the weights again (validation). */
void storage_use_ema(storage *s, bool ema);
/*
 * The memory of everything that it holds, in pieces; some are empty. Replicas that were built by
 * the same programs have the same pieces.
 */
typedef struct storage_piece {
    void *memory;
    size_t size;
} storage_piece;
int storage_piece_count(const storage *s);
storage_piece storage_piece_at(const storage *s, int index);
void storage_changed(storage *s); /* after its pieces were written from outside                  */
/* Everything that 'from' holds, which was built by the same programs on a device alike. */
void storage_copy(storage *to, const storage *from);
/* Set the averages to the weights (after pretrained weights were read). */
void storage_restart_ema(storage *s);

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

/* ---- explain --------------------------------------------------------------------------------- */

typedef struct kernel_facts {
    node_section section;
    const char *kind, *name, *implementation;
    uint64_t bytes, flop;     /* read and written; operations                                     */
    size_t arena;             /* bytes of the arena alive while it runs                           */
    int nodes;
    pons_type type;           /* of the first thing that it reads                                 */
    bool tf32;                /* f32 may be rounded to tf32 where it is multiplied                */
} kernel_facts;

typedef struct program_facts {
    size_t arena, sum_of_tensors, scratch, packed, parameters, fold;
    size_t inputs;            /* those that the program has memory for                            */
    size_t lendable;          /* of these: what program_lend leaves untouched                     */
    int64_t parameter_count;
    int kernel_count, node_count, untrained_count;
    int bucket_count;         /* pieces in which a step is summed over replicas; 1 with one       */
    int segment_count;        /* pieces of a step that the device records; 0: it does not         */
} program_facts;

void program_describe(const program *p, program_facts *facts);
kernel_facts program_kernel(const program *p, int index);
/* A name that no other kernel has: the second of a name is NAME#2. */
void program_kernel_name(const program *p, int index, char *out, size_t size);
const char *program_untrained(const program *p, int index); /* parameters without a path          */
/* The op plugins that the graph uses, each once; NULL behind the last. */
const struct plugin *program_op(const program *p, int index);
/*
 * Called after every kernel when set, for bench: how many seconds it took, by the device's clock
 * where it has one, and how many this process did to run it. The program waits for each kernel.
 */
typedef void program_after(void *context, int kernel, double seconds, double host_seconds);
void program_watch(program *p, program_after *after, void *context);

#endif
