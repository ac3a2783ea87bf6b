/*
 * parallel.h - a loop over pieces, by as many threads as this one has processors, for as long as
 * the loop takes. For what follows the network on a whole volume; kernels have threads of their
 * own.
 */
#ifndef CORE_BASE_PARALLEL_H
#define CORE_BASE_PARALLEL_H

#include <stdint.h>

/*
 * body(context, first, end) for pieces of at most 'piece' of 0 .. count - 1, in any order and some
 * at the same time; this thread does its part. Pieces do not depend on the threads.
 */
void parallel_run(int64_t count, int64_t piece, void (*body)(void *context, int64_t first,
                                                             int64_t end), void *context);

#endif
