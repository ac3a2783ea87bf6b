/*
 * parallel.h - run a loop on several threads, for whole volumes: reading, transforms,
 * post-processing. Kernels have threads of their own.
 *
 * A loop starts one thread for each range, as far as the thread budget allows. Nested loops share
 * the budget, and a thread that finds no range left returns to it. So loops over cases and over the
 * slabs of each case never use more threads than the budget.
 */
#ifndef CORE_BASE_THREAD_PARALLEL_H
#define CORE_BASE_THREAD_PARALLEL_H

#include <stdint.h>

/* Thread budget: threads that loops may start beside the threads that share it. */
typedef struct thread_budget {
    _Atomic int threads;
} thread_budget;

/*
 * Set the budget of this thread's loops and of loops within them; 'from' must outlive them. NULL,
 * the initial state, stands for as many threads as this one has processors. Returns the old budget.
 */
thread_budget *thread_budget_set(thread_budget *from);

/*
 * Call body(context, first, end) for ranges of at most 'piece' that cover 0 .. count - 1, in any
 * order and partly at the same time. This thread runs the first range and a share of the others.
 * The ranges do not depend on the number of threads.
 */
void parallel_run(int64_t count, int64_t piece, void (*body)(void *context, int64_t first,
                                                             int64_t end), void *context);

/* The range length that is worth a thread, where each index stands for 'size' voxels. */
int64_t parallel_piece(int64_t size);

#endif
