/*
 * guard.c - limit the accesses of a kernel, in a build with AddressSanitizer, to the bytes of its
 * parameters in GPU memory.
 *
 * Each allocation has a few additional views, all of them poisoned. Consecutive parameters use
 * different views, where their bytes are clean while the kernel runs. A step beyond one parameter
 * is therefore found even where another one begins. One kernel runs at a time.
 */
#include "guard.h"

#include <pthread.h>
#include <stdio.h>

/* Functions of the sanitizer's library, if the process has it. */
void __asan_poison_memory_region(const volatile void *at, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *at, size_t size) __attribute__((weak));
void *__asan_get_report_address(void) __attribute__((weak));
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const guard_kernel *running;

bool guard_is_there(void)
{
    return __asan_poison_memory_region != NULL && __asan_unpoison_memory_region != NULL;
}

/* Poison a range. The sanitizer's unit is eight bytes, of which the last may be clean in part. */
void guard_forbid(const void *at, size_t size)
{
    uintptr_t begin = (uintptr_t)at & ~(uintptr_t)7;
    uintptr_t end = ((uintptr_t)at + size + 7) & ~(uintptr_t)7;

    if (guard_is_there() && size > 0)
        __asan_poison_memory_region((const void *)begin, end - begin);
}

void guard_allow(const void *at, size_t size)
{
    if (guard_is_there() && size > 0)
        __asan_unpoison_memory_region(at, size);
}

/* ---- a kernel -------------------------------------------------------------------------------- */

/* The distance of 'at' from the bytes of a parameter. */
static uintptr_t distance(const guard_range *r, uintptr_t at)
{
    uintptr_t begin = (uintptr_t)r->at, end = begin + r->size;

    return at < begin ? begin - at : at >= end ? at - end : 0;
}

/* Print the kernel and its parameter after the sanitizer's own report. */
static void tell(void)
{
    const guard_kernel *k = running;
    uintptr_t at = __asan_get_report_address != NULL ? (uintptr_t)__asan_get_report_address() : 0;
    const guard_range *nearest = NULL;

    if (k == NULL)
        return;
    for (int i = 0; i < k->count; i++)
        if (k->range[i].size > 0
            && (nearest == NULL || distance(&k->range[i], at) < distance(nearest, at)))
            nearest = &k->range[i];
    fprintf(stderr, "fake cuda: in kernel '%s'", k->name);
    if (nearest != NULL)
        fprintf(stderr, ": %ju bytes %s the %zu of '%s'", (uintmax_t)distance(nearest, at),
                at < (uintptr_t)nearest->at ? "before" : "behind", nearest->size, nearest->name);
    fprintf(stderr, "\n");
}

void guard_begin(const guard_kernel *k)
{
    if (!guard_is_there())
        return;
    pthread_mutex_lock(&lock);
    running = k;
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(tell);
    for (int i = 0; i < k->count; i++)
        guard_allow(k->range[i].at, k->range[i].size);
}

void guard_end(const guard_kernel *k)
{
    if (!guard_is_there())
        return;
    for (int i = 0; i < k->count; i++)
        guard_forbid(k->range[i].at, k->range[i].size);
    running = NULL;
    pthread_mutex_unlock(&lock);
}
