/*
 * parallel.h - a loop over pieces, by several threads for as long as the loop takes. For whole
 * volumes: reading, transforms, what follows the network. Kernels have threads of their own.
 *
 * How many: a loop starts as many threads as it has pieces for and as are spare at that moment.
 * Loops within a loop take from the same ones, and a thread that finds no piece any more is spare
 * again: so a loop over cases and loops over slabs of each need no plan, and are never more than
 * was lent.
 */
#ifndef CORE_BASE_THREAD_PARALLEL_H
#define CORE_BASE_THREAD_PARALLEL_H

#include <stdint.h>

/* Threads that may be started beside those that borrow from here. */
typedef struct parallel_spare {
    _Atomic int threads;
} parallel_spare;

/*
 * Loops of this thread, and of those that they start, borrow from 'from', which must last as long;
 * NULL, as at first: as many threads as this one has processors. Returns what was before.
 */
parallel_spare *parallel_borrow(parallel_spare *from);

/*
 * body(context, first, end) for pieces of at most 'piece' of 0 .. count - 1, in any order and some
 * at the same time; this thread does the first one and its part of the others. Pieces do not depend
 * on the threads.
 */
void parallel_run(int64_t count, int64_t piece, void (*body)(void *context, int64_t first,
                                                             int64_t end), void *context);

/* A piece worth a thread, where each of its indices stands for 'size' voxels. */
int64_t parallel_piece(int64_t size);

#endif
