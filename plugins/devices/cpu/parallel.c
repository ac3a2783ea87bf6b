/*
 * parallel.c - the one place that starts OpenMP regions for our own kernels.
 */
#include "cpu.h"

#include <omp.h>

void cpu_parallel(int threads, int64_t count, void (*body)(void *context, int64_t i, int thread),
                  void *context)
{
    if (threads > count)
        threads = (int)count;
    if (threads <= 1) {
        for (int64_t i = 0; i < count; i++)
            body(context, i, 0);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t i = 0; i < count; i++)
            body(context, i, thread);
    }
}

void cpu_share(int index, int count, int n, int *first, int *end)
{
    if (n < count) {
        *first = index % n;
        *end = *first + 1;
        return;
    }
    *first = (int)((int64_t)n * index / count);
    *end = (int)((int64_t)n * (index + 1) / count);
}
