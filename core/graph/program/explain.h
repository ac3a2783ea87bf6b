/*
 * explain.h - what a program will do and need, and how long its kernels take.
 */
#ifndef CORE_GRAPH_PROGRAM_EXPLAIN_H
#define CORE_GRAPH_PROGRAM_EXPLAIN_H

#include "graph/program/program.h"

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
