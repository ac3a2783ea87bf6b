/*
 * memory.h - offsets for blocks with known lifetimes (R15, R16).
 *
 * This module knows no graphs: a block is a size and the first and last step at which it is alive.
 */
#ifndef CORE_GRAPH_PROGRAM_MEMORY_H
#define CORE_GRAPH_PROGRAM_MEMORY_H

#include "graph/storage/device_handle.h"

typedef struct memory_block {
    size_t size;     /* bytes; 0 takes no memory                                                  */
    int first, last; /* alive from step 'first' to step 'last', both included                     */
    size_t offset;   /* out: a multiple of MEMORY_ALIGNMENT                                       */
} memory_block;

/*
 * Choose offsets so that blocks alive at the same step do not overlap. With reuse = false no two
 * blocks overlap at all. Returns the size of the arena.
 */
size_t memory_plan(memory_block *block, int count, bool reuse);
/* The sum of sizes alive at step 'step'. */
size_t memory_alive(const memory_block *block, int count, int step);

#endif
