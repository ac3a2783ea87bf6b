/*
 * program_internal.h - a program while it is made and while it runs.
 *
 * Each part of struct program is written by one file, which its comment names. Functions begin with
 * the name of the file that defines them.
 */
#ifndef CORE_GRAPH_PROGRAM_PROGRAM_INTERNAL_H
#define CORE_GRAPH_PROGRAM_PROGRAM_INTERNAL_H

#include "graph/program/explain.h"
#include "graph/program/memory.h"
#include "graph/program/plan.h"
#include "graph/storage/storage.h"
#include "graph/optimizer/update.h"

/* ---- gradients.c: the backward pass, and the nodes that must be in memory -------------------- */

typedef struct program_gradients {
    pons_node *loss_scale;     /* The factor of the loss in fp16; NULL: the loss is not scaled.   */
    int count;                 /* Parameters with a gradient.                                     */
    storage_entry **parameter; /* These parameters.                                               */
    pons_node **gradient;      /* The gradient of each parameter.                                 */
    int state_count;           /* States with a contribution.                                     */
    storage_entry **state;     /* These states.                                                   */
    pons_node **contribution;  /* The contribution of each state.                                 */
    int root_count;            /* Nodes that must be in memory.                                   */
    pons_node **root;          /* These nodes: outputs, loss, gradients, contributions.           */
    int untrained_count;       /* Parameters without a path from the loss, except those left_out. */
    const char **untrained;    /* Their names.                                                    */
} program_gradients;

pons_status gradients_differentiate(program *p, pons_error *err);
pons_status gradients_list_roots(program *p, pons_error *err);

/* ---- tensor_layout.c: the memory of every tensor, and the plan of the arena ------------------ */

typedef enum tensor_location {
    LOCATION_NONE = 0,
    LOCATION_FIXED,            /* Address 'memory': inputs, resident memory, begin's results.     */
    LOCATION_ENTRY,            /* A parameter, a state or its average, in the storage.            */
    LOCATION_SCALE,            /* The storage's scale of the loss.                                */
    LOCATION_GRAD_ACCUM,       /* Bytes 'offset' of the micro-batch's accumulation slot.          */
    LOCATION_ARENA             /* An offset in block 'block' of the arena.                        */
} tensor_location;

typedef struct program_tensor {
    tensor_location location;
    pons_tensor tensor;        /* Type and shape.                                                 */
    size_t size;               /* Bytes.                                                          */
    void *memory;              /* FIXED: the address.                                             */
    const storage_entry *entry; /* ENTRY: the parameter or state.                                 */
    size_t offset;             /* FIXED and GRAD_ACCUM: bytes from the begin of their memory.     */
    int block;                 /* ARENA: the block.                                               */
    int writers;               /* Calls of a micro-batch that write the tensor, or a part of it.  */
    bool output;               /* The host reads the tensor behind the last call.                 */
} program_tensor;

typedef struct program_layout {
    int tensor_count;          /* Nodes when the plan was made.                                   */
    program_tensor *tensor;    /* The tensors, by the number of the node that owns them.          */
    int block_count;           /* Blocks of the arena.                                            */
    int block_room;            /* Blocks that 'block' has room for.                               */
    memory_block *block;       /* Their sizes, lifetimes and offsets.                             */
    size_t arena_size;         /* Bytes of the arena.                                             */
    size_t scratch_size;       /* Largest scratch memory of a call.                               */
    char *begin_memory;        /* Results of begin, which live until weights change.              */
    size_t begin_size;         /* Bytes of 'begin_memory'.                                        */
    char *inputs;              /* The inputs of a micro-batch, and behind them its step key.      */
    size_t inputs_size;        /* Bytes of 'inputs'.                                              */
    size_t step_key_offset;    /* Bytes in front of the step key.                                 */
    staging input_staging;     /* Inputs on their way to a device with memory of its own.         */
} program_layout;

/*
 * Accumulation slots: [gradients of the parameter blocks | contributions of the state blocks |
 * loss], each of one micro-batch or summed over some (R2). They lie side by side.
 */
typedef struct program_grad_accum {
    char *memory;              /* All slots.                                                      */
    size_t slot_size;          /* Bytes of a slot.                                                */
    int slot_count;            /* Slots alive at once.                                            */
    size_t gradients_size;     /* Bytes of the gradients, in front of the contributions.          */
    size_t loss_offset;        /* Bytes in front of the loss.                                     */
    size_t *block_offset;      /* Bytes in front of each storage block in a slot.                 */
    char *host_slot;           /* A copy of slot 0 for sums that are made in host memory; NULL.   */
    int current_slot;          /* The slot that micro writes (bind.c).                            */
} program_grad_accum;

/* Assign locations to all tensors outside of the arena. Call it before prepare. */
pons_status tensor_layout_assign(program *p, pons_error *err);
/* Plan the arena. Call it after prepare. */
pons_status tensor_layout_plan_arena(program *p, pons_error *err);
/* The gradients or contributions of 'block' in accumulation slot 0. */
char *tensor_layout_slot_block(const program *p, const storage_block *block);

/* ---- prepare.c: the calls, their kernels, and the numbers of a step -------------------------- */

/* Sections beside node_section: SECTION_ACCUMULATE adds a bucket of one slot to another. */
enum { SECTION_ACCUMULATE = SECTION_UPDATE + 1, SECTION_ALL };

enum { PACKED_INPUTS = 2 };    /* Inputs that a kernel may want packed: the first ones.           */

typedef struct program_call {
    node_section section;
    const pons_request *request;
    pons_kernel kernel;
    pons_call call;            /* Addresses and scratch, as the kernel gets them.                 */
    program_tensor **input;    /* NULL: addresses never change (norm, update, accumulate).        */
    program_tensor **output;   /* Likewise.                                                       */
    void **input_memory;       /* The address of each input.                                      */
    void **output_memory;      /* The address of each output.                                     */
    void **packed;             /* The packed tensor of each input, or NULL.                       */
    bool packs_first;          /* The call packs its inputs before it runs, into 'pack_block'.    */
    int pack_block[PACKED_INPUTS]; /* Blocks of the arena; -1: not packed.                        */
    bool packs;                /* The call packs input 'pack_input' of call 'pack_call'.          */
    int pack_call, pack_input;
    bool host;                 /* This process computes: the device must have ended first.        */
    bool fixed;                /* The device's own kernel: every run does the same.               */
    int scratch;               /* Block of the arena with the scratch memory; -1: none.           */
    int nodes;                 /* Nodes that the call computes.                                   */
    uint64_t flop;             /* Operations.                                                     */
    uint64_t bytes;            /* Bytes read and written.                                         */
    size_t alive;              /* Bytes of the arena in use while the call runs.                  */
    bool backward;             /* Part of the backward pass.                                      */
    const node_origin *origin; /* The plugin whose nodes it computes; NULL: the core.             */
} program_call;

typedef struct program_calls {
    int count;
    program_call *call;        /* Section after section, in the order of 'section_first'.         */
    int section_first[SECTION_ALL + 1]; /* The first call of each section.                        */
    table_pool pool;           /* Memory of packed weights and of the update's tables.            */
    size_t packed_size;        /* Bytes of packed weights.                                        */
} program_calls;

typedef struct program_numbers {
    staging staging;           /* Numbers of a step, and behind them those of the check.          */
    void *step[STEP_NUMBER_COUNT]; /* The device address of each step_number.                     */
    update_check check;        /* One number for each tensor that the update writes.              */
} program_numbers;

pons_status prepare_calls(program *p, pons_error *err);
const char *kernel_kind_name(pons_kernel_kind kind);

/* ---- host_kernels.c: kernels of this process for a device with memory of its own ------------- */

/* Make of 'k', which reads and writes host memory, a kernel that copies from and to the device. */
pons_status host_kernel_prepare(const device *d, const pons_request *r, pons_kernel *k,
                                pons_error *err);

/* ---- all_reduce_kernels.c: all_reduce nodes, the sums inside a micro-batch (R10) ------------- */

typedef struct program_all_reduce {
    int count;                 /* Sums over replicas in a micro-batch (program.c).                */
    void **pending;            /* The handle of each sum from start to wait.                      */
    char **host_buffer;        /* Host memory of each sum made on the host, else NULL.            */
} program_all_reduce;

pons_status all_reduce_kernel_prepare(program *p, const pons_request *r, pons_kernel *k,
                                      pons_error *err);

/* ---- gradient_buckets.c: the pieces in which a step is summed over replicas (R8) ------------- */

typedef struct program_bucket {
    size_t offset, size;       /* Bytes, in an accumulation slot.                                 */
    int last_call;             /* The call of micro behind which the bucket is complete.          */
    void *pending;             /* The sum over replicas between its start and its wait.           */
} program_bucket;

typedef struct program_buckets {
    int count;                 /* 1 without replicas.                                             */
    program_bucket *bucket;    /* The buckets in the order of completion.                         */
} program_buckets;

/*
 * Events of a device with memory of its own: the inputs have left the host, and are where kernels
 * read them. Two more for each bucket: it is complete, and it is on the host.
 */
enum { EVENT_INPUTS_SENT = 0, EVENT_INPUTS_TAKEN, EVENT_BUCKETS };

/* The most buckets that gradient_buckets_cut makes. */
int gradient_buckets_limit(const program *p);
void gradient_buckets_cut(program *p);
/*
 * With replicas: bucket b is complete behind all kernels run so far. Its sum starts, or its copy to
 * the host.
 */
pons_status gradient_bucket_start(program *p, int b, pons_error *err);
/* All kernels of the last micro-batch have been run: start the sums that are made on the host. */
pons_status gradient_buckets_start_host_sums(program *p, pons_error *err);
pons_status gradient_buckets_wait(program *p, pons_error *err);

/* ---- schedule.c: what a section runs, in order ----------------------------------------------- */

typedef enum schedule_action {
    SCHEDULE_CALL = 0,         /* Run call 'number'.                                              */
    SCHEDULE_BUCKET_START      /* Bucket 'number' is complete: start its sum over replicas.       */
} schedule_action;

typedef struct schedule_item {
    schedule_action action;
    int number;
} schedule_item;

/* Consecutive items, which run as one graph where the device captures them. */
typedef struct captured_graph {
    int first, count;          /* Items.                                                          */
    bool capturable;           /* All items are fixed calls of a device that can capture.         */
    bool ran;                  /* The items have run one by one.                                  */
    void *handle;              /* The device's graph; NULL: none is captured.                     */
} captured_graph;

typedef struct schedule {
    const char *name;          /* The name that profilers show.                                   */
    int item_count, graph_count;
    schedule_item *item;       /* The items in running order.                                     */
    captured_graph *graph;     /* The items, cut into graphs (captured_graph.c).                  */
} schedule;

typedef struct program_schedules {
    schedule *begin, *norm, *update;
    schedule **micro;          /* The schedule of each micro-batch; some are the same.            */
} program_schedules;

void schedule_build(program *p);

/* ---- captured_graph.c: running a schedule ---------------------------------------------------- */

void captured_graphs_cut(program *p, schedule *s);
/* The graphs of a step that the device captures. */
int captured_graphs_count(const program *p);
pons_status captured_graphs_run(program *p, schedule *s, pons_error *err);
/* Addresses have changed: what is captured holds old ones. */
void captured_graphs_destroy(program *p);

/* ---- bind.c: addresses into calls (R15) ------------------------------------------------------ */

/* An address inside the current accumulation slot. */
typedef struct relocation {
    void **address;            /* Location to which the address is written.                       */
    size_t offset;             /* Bytes, in a slot.                                               */
} relocation;

typedef struct program_binding {
    uint64_t storage_layout;   /* The storage's layout for which the addresses hold.              */
    int relocation_count;
    relocation *relocation;    /* Addresses that change with the accumulation slot.               */
    bool moved;                /* An address has changed since the graphs were captured.          */
} program_binding;

/* Write all addresses; nothing to do while they hold. */
pons_status bind_addresses(program *p, pons_error *err);
/* Let micro write accumulation slot 'slot'. */
void bind_grad_slot(program *p, int slot);
void *bind_address_of(const program *p, const program_tensor *t);

/* ---- program_run.c: the state of a step ------------------------------------------------------ */

typedef struct program_run {
    uint64_t weights_version;  /* The storage's version when begin ran.                           */
    uint64_t step;             /* The step that runs.                                             */
    uint64_t sample, batch;    /* Key of the random numbers of evaluations.                       */
    int micro;                 /* Micro-batches that have run in this step.                       */
    bool sums_ended;           /* The sums over replicas of this step have ended.                 */
    bool inputs_in_flight;     /* The copy of the inputs may not have left the host.              */
    bool inputs_sent_early;    /* The inputs of the next micro-batch have been sent.              */
    step_result result;        /* Result of the last step.                                        */
    range_kind phase;          /* The open range of a phase; RANGE_OTHER: none.                   */
    const node_origin *origin; /* The open range of a plugin, or NULL.                            */
} program_run;

pons_status program_run_call(program *p, int k, pons_error *err);

/* ---- program_range.c: ranges of phases and plugins around calls ------------------------------ */

/* Begin the ranges of a call, unless they are open, and end other ones. */
void program_range_enter(program *p, const program_call *c);
/* End the open ranges. */
void program_range_leave(program *p);

/* ---- program.c ------------------------------------------------------------------------------- */

/* Host memory for tensors of the device that are peeked at. */
typedef struct program_peek_buffer {
    void *memory;
    size_t size;
} program_peek_buffer;

/* The host memory behind 'memory', an address among the inputs. */
void *program_host_input(program *p, void *memory);
/* The content of device memory, as the host reads it until the next call; NULL: no memory. */
const void *program_peek(program *p, const void *memory, size_t size);

/* ---- explain.c ------------------------------------------------------------------------------- */

typedef struct program_watcher {
    program_after *after;      /* Called after every kernel; NULL: nobody watches.                */
    void *context;
} program_watcher;

/* Bytes that a kernel reads and writes. */
uint64_t explain_request_bytes(const pons_request *r);

/* ---- the program ----------------------------------------------------------------------------- */

struct program {
    /* program.c, when the program is made. */
    storage *storage;
    device device;
    program_settings settings;
    pons_graph *graph;         /* Owned.                                                          */
    struct arena *arena;       /* Everything below that lives as long as the program.             */
    bool training;
    pons_node *loss;           /* NULL in an evaluate program.                                    */
    int output_count;
    pons_node **output;        /* Nodes whose values the host reads.                              */
    /* The parts, in the order in which they are made. */
    program_gradients gradients;
    program_all_reduce all_reduce;
    plan plan;
    program_layout layout;
    program_grad_accum grad_accum;
    program_calls calls;
    program_numbers numbers;
    program_buckets buckets;
    program_schedules schedules;
    program_binding binding;
    program_run run;
    program_peek_buffer peek;
    program_watcher watch;
};

#endif
