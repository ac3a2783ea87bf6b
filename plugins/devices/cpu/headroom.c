/*
 * headroom.c - ask for memory and give it back, before a library asks that cannot take a no.
 *
 * oneDNN 2.6.3 does not look at whether it got the page for a kernel's code (SIGSEGV), and an
 * OpenMP runtime ends the process with its own line and code when a thread has no stack.
 */
#include "headroom.h"

#include <omp.h>
#include <pthread.h>
#include <sys/mman.h>

pons_status headroom_check(size_t size, const char *what, pons_error *err)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return pons_fail(err, PONS_DEVICE, "out of memory: %zu MiB for %s", size >> 20, what);
    munmap(memory, size);
    return PONS_OK;
}

static size_t stack_size(void)
{
    size_t size = (size_t)8 << 20;
    pthread_attr_t defaults;

    if (pthread_getattr_default_np(&defaults) == 0) {
        pthread_attr_getstacksize(&defaults, &size);
        pthread_attr_destroy(&defaults);
    }
    return size;
}

pons_status headroom_start_threads(int threads, pons_error *err)
{
    int there = 0;

    omp_set_num_threads(threads);
    if (threads <= 1)
        return PONS_OK;
    if (headroom_check((size_t)(threads - 1) * stack_size(), "the stacks of the kernels' threads",
                       err) != PONS_OK)
        return err->status;
#pragma omp parallel num_threads(threads) reduction(+ : there)
    there++;
    if (there < threads)
        return pons_fail(err, PONS_DEVICE, "OpenMP starts %d threads, %d are asked for", there,
                         threads);
    return PONS_OK;
}
