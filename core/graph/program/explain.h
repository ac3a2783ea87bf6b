/*
 * explain.h - facts about a program and its kernels, and the time that kernels take.
 */
#ifndef CORE_GRAPH_PROGRAM_EXPLAIN_H
#define CORE_GRAPH_PROGRAM_EXPLAIN_H

#include "graph/program/program.h"

typedef struct kernel_facts {
    node_section section;
    const char *kind, *name, *implementation;
    uint64_t bytes, flop;     /* read and written; operations                                     */
    size_t arena;             /* bytes of the arena in use while it runs                          */
    int nodes;
    pons_type type;           /* type of input 0                                                  */
    bool tf32;                /* products may round f32 to tf32                                   */
} kernel_facts;

typedef struct program_facts {
    size_t arena, sum_of_tensors, scratch, packed, parameters, grad_accum;
    size_t inputs;            /* bytes of the inputs that the program has memory for              */
    size_t external_inputs;   /* the part of 'inputs' that external memory replaces               */
    int64_t parameter_count;
    int kernel_count, node_count, untrained_count;
    int bucket_count;         /* gradient buckets of a step; 1 without replicas                   */
    int captured_graph_count; /* graphs of a step that the device captures; 0: it cannot capture  */
} program_facts;

void program_describe(const program *p, program_facts *facts);
kernel_facts program_kernel(const program *p, int index);
/* A unique name: the second kernel of a name is NAME#2. */
void program_kernel_name(const program *p, int index, char *out, size_t size);
/* The name of a parameter without a path from the loss that is not left_out. */
const char *program_untrained(const program *p, int index);
/* The op plugins of the graph, each once; NULL behind the last. */
const struct plugin *program_op(const program *p, int index);
/*
 * A function called after every kernel, for bench. 'seconds' is the kernel's time, by the device's
 * clock if it has one; 'host_seconds' is the time of this process. The program waits for each
 * kernel.
 */
typedef void program_after(void *context, int kernel, double seconds, double host_seconds);
void program_watch(program *p, program_after *after, void *context);

#endif
