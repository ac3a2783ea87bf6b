/*
 * alloc_probe.c - probe an allocation before calling a library that crashes or exits when one
 * fails.
 *
 * oneDNN 2.6.3 does not check the page for a kernel's code (SIGSEGV). An OpenMP runtime ends the
 * process, with its own message and exit code, if it cannot start a thread. Memory belongs to the
 * process, so a lock covers both the probe and the library's allocation: a second probe could take
 * the memory that the first one found.
 */
#include "cpu/alloc_probe.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pons_status check_size(size_t size, const char *what, pons_error *err)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return pons_fail(err, PONS_DEVICE, "out of memory: %zu MiB for %s", size >> 20, what);
    munmap(memory, size);
    return PONS_OK;
}

pons_status alloc_probe_begin(size_t size, const char *what, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&lock);
    status = check_size(size, what, err);
    if (status != PONS_OK)
        pthread_mutex_unlock(&lock);
    return status;
}

void alloc_probe_end(void) { pthread_mutex_unlock(&lock); }

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

/* The threads of this process, or 0 if they cannot be counted. */
static int count_threads(void)
{
    struct stat facts;

    return stat("/proc/self/task", &facts) == 0 ? (int)facts.st_nlink - 2 : 0;
}

/* The system's limit counts a joined thread for a short time after the join. */
static void wait_for_ends(int before)
{
    const struct timespec moment = { 0, 1000000 };

    for (int i = 0; i < 1000 && count_threads() > before; i++)
        nanosleep(&moment, NULL);
}

static void *wait_at_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/*
 * Start 'count' threads at the same time and end them, before the runtime starts threads that stay.
 */
static pons_status check_threads(int count, pons_error *err)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *thread = malloc((size_t)count * sizeof *thread);
    int before = count_threads(), started = 0, problem = 0;

    if (thread == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the kernels' threads");
    pthread_mutex_lock(&gate);
    while (started < count && problem == 0) {
        problem = pthread_create(&thread[started], NULL, wait_at_gate, &gate);
        started += problem == 0;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    wait_for_ends(before);
    if (problem != 0)
        return pons_fail(err, PONS_DEVICE, "cannot start %d threads for kernels, only %d: %s\n"
                         "hint: [distribute] threads, or the limit on a user's processes "
                         "(ulimit -u)", count, started, strerror(problem));
    return PONS_OK;
}

pons_status alloc_probe_start_threads(int threads, pons_error *err)
{
    int there = 0;

    omp_set_num_threads(threads);
    if (threads <= 1)
        return PONS_OK;
    if (alloc_probe_begin((size_t)(threads - 1) * stack_size(),
                          "the stacks of the kernels' threads", err) != PONS_OK)
        return err->status;
    if (check_threads(threads - 1, err) != PONS_OK) {
        alloc_probe_end();
        return err->status;
    }
#pragma omp parallel num_threads(threads) reduction(+ : there)
    there++;
    alloc_probe_end();
    if (there < threads)
        return pons_fail(err, PONS_DEVICE, "OpenMP starts %d threads, %d are asked for", there,
                         threads);
    return PONS_OK;
}
