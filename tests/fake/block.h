/*
 * block.h - run the 256 threads of a block on one thread of this process.
 */
#ifndef TESTS_FAKE_BLOCK_H
#define TESTS_FAKE_BLOCK_H

#include <stddef.h>

struct shim_place {
    unsigned x, y, z;
};

/* As in shim.h, of the module whose kernel runs. */
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
/* Every thread calls 'kernel'. Aborts with a line when threads do not meet at the same barriers. */
void block_run(block_runner *r, struct shim_state *shim, void (*kernel)(void **), void **parameters,
               unsigned block, int threads);

#endif
