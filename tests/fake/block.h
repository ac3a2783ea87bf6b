/*
 * block.h - run the 256 threads of a block on one thread of this process.
 */
#ifndef TESTS_FAKE_BLOCK_H
#define TESTS_FAKE_BLOCK_H

#include <stddef.h>

struct shim_place {
    unsigned x, y, z;
};

/* The state of shim.h in the module of the running kernel. */
struct shim_state {
    struct shim_place thread, block;
    void (*barrier)(void);
    float (*shuffle_down)(float x, unsigned offset);
};

struct shim_parameter {
    const char *name;
    int memory, writes, more;
    size_t size;
};

typedef struct block_runner block_runner;

block_runner *block_runner_new(void);
void block_runner_free(block_runner *r);
/*
 * Every thread calls 'kernel'. Threads that do not meet at the same barriers abort the process with
 * a line.
 */
void block_run(block_runner *r, struct shim_state *shim, void (*kernel)(void **), void **parameters,
               unsigned block, int threads);

#endif
