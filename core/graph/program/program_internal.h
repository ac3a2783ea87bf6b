/*
 * program_internal.h - a program while it is made and while it runs: what program.c and the files
 * named below share.
 */
#ifndef CORE_GRAPH_PROGRAM_PROGRAM_INTERNAL_H
#define CORE_GRAPH_PROGRAM_PROGRAM_INTERNAL_H

#include "graph/program/explain.h"
#include "graph/program/memory.h"
#include "graph/program/plan.h"
#include "graph/storage/storage.h"
#include "graph/optimizer/update.h"

/* Where a tensor lies. */
typedef enum place_kind {
    PLACE_NONE = 0,
    PLACE_FIXED,  /* 'memory': inputs, what begin computes                                        */
    PLACE_ENTRY,  /* a parameter or state, or its average                                         */
    PLACE_SCALE,  /* storage's number                                                             */
    PLACE_FOLD,   /* 'offset' bytes into the fold set of the micro-batch                          */
    PLACE_ARENA   /* block 'block' of the memory plan                                             */
} place_kind;

typedef struct program_tensor {
    place_kind kind;
    pons_tensor tensor;
    size_t size;
    void *memory;
    const storage_entry *entry;
    size_t offset;
    int block;
    int writers;
    bool output;               /* the host reads it                                               */
} program_tensor;

typedef struct program_call {
    node_section section;
    const pons_request *request;
    pons_kernel kernel;
    pons_call call;
    program_tensor **input, **output; /* NULL: addresses are fixed (reduce and update)            */
    void **input_memory, **output_memory;
    void **packed;             /* by input: the packed tensor, or NULL                            */
    bool packs;                /* packs input 'pack_input' of call 'pack_call'                    */
    bool host;                 /* this process computes: the device must have ended what it reads */
    bool fixed;                /* the device's own: does the same whenever it is run              */
    int pack_call, pack_input;
    int scratch;               /* block of the memory plan, -1: none                              */
    int nodes;
    uint64_t flop, bytes;
    size_t alive;              /* bytes of the arena while it runs                                */
} program_call;

/* A range of the fold set that is summed over replicas in one piece. */
typedef struct program_bucket {
    size_t offset, size;       /* bytes, in a set                                                 */
    int ready;                 /* complete after this call of the step's last micro-batch         */
    void *pending;
} program_bucket;

/* Items of a passage that follow each other. */
typedef struct program_segment {
    int first, count;
    bool fixed;                /* all of them are fixed calls: the device may record them         */
    bool ran;                  /* call by call, at least once                                     */
    void *recording;           /* NULL: there is none                                             */
} program_segment;

/* What runs at one go, in order. */
typedef struct program_passage {
    const char *name;          /* for profilers                                                   */
    int item_count, segment_count;
    int *item;                 /* number of a call; -1 - b: bucket b is complete, and leaves      */
    program_segment *segment;
} program_passage;

/*
 * Marks on the queues of a device whose memory is not host memory: the inputs have left the host,
 * have reached where kernels read them; and two for each bucket: it is complete, it is on the host.
 */
enum { MARK_SENT = 0, MARK_TAKEN, MARK_BUCKETS };

/* An address that moves with the fold set. */
typedef struct relocation {
    void **address;
    size_t offset;
} relocation;

enum { SECTION_FOLD = SECTION_UPDATE + 1, SECTION_ALL };

struct program {
    storage *storage;
    device device;
    program_settings settings;
    pons_graph *graph;
    struct arena *arena;
    bool training;
    pons_node *loss;
    pons_node *scale;                   /* of the loss, in fp16; else NULL                        */
    int output_count, gradient_count, merge_count, root_count, untrained_count;
    pons_node **output;
    storage_entry **trained, **merged;  /* parameters with a gradient; states with a contribution */
    pons_node **gradient, **contribution;
    pons_node **root;
    const char **untrained;
    int sum_count;                      /* sums over replicas in a micro-batch                    */
    void **pending;                     /* by index of the sum: what its start has begun          */
    char **on_host;                     /* likewise: its buffer, where sums are made on the host  */
    plan plan;
    int tensor_count;                   /* nodes, when the plan was made                          */
    program_tensor *tensor;             /* by number of the owner                                 */
    int block_count, block_room;
    memory_block *block;
    size_t work_size;                   /* of the arena                                           */
    size_t scratch_size;                /* largest of a call                                      */
    char *kept, *inputs, *fold;         /* begin's tensors; inputs and the moment; fold sets      */
    mirror sent;                        /* inputs on their way, where memory is the device's      */
    bool sending, ahead;                /* they may not have left the host; they were sent early  */
    char *summed;                       /* a fold set on the host, where sums are made there      */
    void *looked_at;                    /* host memory for a look at a tensor of the device       */
    size_t looked_at_size;
    size_t kept_size, packed_size, inputs_size, fold_size, fold_gradients, fold_loss;
    size_t step_key_offset;               /* in 'inputs'                                          */
    size_t *fold_block;                 /* by storage block in list order: offset in a set        */
    int fold_sets;
    int bucket_count;
    program_bucket *bucket;             /* in the order in which they become ready                */
    table_pool pool;
    mirror numbers;                     /* of a step; behind them those of the check              */
    void *number[STEP_NUMBER_COUNT];    /* where they are on the device                           */
    update_check check;
    step_result result;                 /* of the last step                                       */
    program_passage *begin_passage, *reduce_passage, *update_passage;
    program_passage **micro_passage;    /* by micro-batch of a step; some are the same            */
    int call_count, section_first[SECTION_ALL + 1];
    program_call *call;
    uint64_t layout, version;           /* of the storage when bound, when begin ran              */
    int landing;                        /* fold set that micro writes                             */
    int relocation_count;
    relocation *relocation;
    bool moved;                         /* an address has changed since it was last bound         */
    uint64_t step;
    int micro;                          /* micro-batches run in this step                         */
    bool waited;                        /* the sums of this step have ended                       */
    program_after *after;
    void *context;
};

/* gradients.c: add the backward pass, list what has to be in memory. */
pons_status program_differentiate(program *p, pons_error *err);
pons_status program_list_roots(program *p, pons_error *err);
/* tensor_layout.c: where every tensor lies, and the arena. */
pons_status program_place(program *p, pons_error *err);
pons_status program_lay_out(program *p, pons_error *err);
size_t fold_block_offset(const program *p, const storage_block *block); /* bytes, in a set        */
/* prepare.c: kernels for the plan, packing, folding, reduce and update. */
pons_status program_prepare(program *p, pons_error *err);
const char *kernel_kind_name(pons_kernel_kind kind);
/* host_kernels.c: 'k', which reads and writes host memory, for a device that has its own. */
pons_status hosted_prepare(const device *d, const pons_request *r, pons_kernel *k,
                           pons_error *err);
/* collectives.c: the halves of a sum over replicas. */
pons_status collective_prepare(program *p, const pons_request *r, pons_kernel *k, pons_error *err);
/* buckets.c: the pieces in which a step is summed over replicas; one without replicas. */
int program_bucket_limit(const program *p);
void program_cut_buckets(program *p);
/* With replicas: bucket b is complete behind all kernels run so far; its sum begins, or will. */
pons_status program_bucket_start(program *p, int b, pons_error *err);
/* All kernels of the step's last micro-batch have been run. */
pons_status program_buckets_started(program *p, pons_error *err);
pons_status program_buckets_wait(program *p, pons_error *err);
/* program.c: where the host writes what lies at 'memory' among the inputs. */
void *program_host_input(program *p, void *memory);
/* What the device has at 'memory', as the host reads it until the next call; or NULL. */
const void *program_look(program *p, const void *memory, size_t size);
/* capture.c */
void program_cut_segments(program *p);
int program_segment_count(const program *p);            /* that are recorded, in a step           */
pons_status program_run_passage(program *p, program_passage *a, pons_error *err);
void program_forget_segments(program *p);               /* addresses have changed                 */
/* program_run.c: call k. */
pons_status program_run_call(program *p, int k, pons_error *err);
/* bind.c */
pons_status program_bind(program *p, pons_error *err);  /* does nothing when addresses still hold */
void program_land(program *p, int set);                 /* the fold set that micro writes         */
void *program_address(const program *p, const program_tensor *t);
/* explain.c */
uint64_t request_bytes(const pons_request *r);

#endif
