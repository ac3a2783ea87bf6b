/*
 * cpu_threads.c - the only place that starts OpenMP regions for our own kernels.
 *
 * Each thread begins with its own contiguous share of the tasks, which is the same share in every
 * kernel. The data that it wrote is the data that it reads next, often from its own cache. A thread
 * without tasks steals from the others, so that no region waits for a thread that lost its
 * processor.
 */
#include "cpu/cpu.h"

#include <omp.h>
#include <stdatomic.h>

#include "base/integer.h"

enum { SHARES = 64 }; /* shares; with more threads, some threads have one in common */

/* Tasks next .. end - 1 are not yet taken. Each share has a cache line of its own. */
typedef struct share {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} share;

static void divide_shares(share *shares, int n, int64_t count)
{
    for (int s = 0; s < n; s++) {
        atomic_init(&shares[s].next, count * s / n);
        shares[s].end = count * (s + 1) / n;
    }
}

void cpu_parallel_for(int threads, int64_t count, void (*body)(void *context, int64_t i,
                                                               int thread),
                      void *context)
{
    share shares[SHARES];
    int n;

    if (threads > count)
        threads = (int)count;
    if (threads <= 1) {
        for (int64_t i = 0; i < count; i++)
            body(context, i, 0);
        return;
    }
    n = min_int(threads, SHARES);
    divide_shares(shares, n, count);
#pragma omp parallel num_threads(threads)
    {
        int thread = omp_get_thread_num();

        for (int k = 0; k < n; k++) {
            share *s = &shares[(thread + k) % n];
            int64_t i;
            while ((i = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->end)
                body(context, i, thread);
        }
    }
}

void cpu_threads_share(int index, int count, int n, int *first, int *end)
{
    if (n < count) {
        *first = index % n;
        *end = *first + 1;
        return;
    }
    *first = (int)((int64_t)n * index / count);
    *end = (int)((int64_t)n * (index + 1) / count);
}
