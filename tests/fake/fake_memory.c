/*
 * fake_memory.c - memory of the GPU, and pinned memory of the host.
 *
 * Every allocation is mapped twice: at the address of the caller, and at an address for tasks of
 * streams. GPU memory is inaccessible at the caller's address. Pinned pages of a copy are
 * inaccessible until this process has waited for the copy. A guard page follows each allocation.
 * Kernels reach GPU memory at addresses of their own where guard.h checks it.
 */
#include "fake_driver.h"

#include "guard.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, FILLING = 0x5a };
enum { TYPE_HOST = 1, TYPE_DEVICE = 2, ATTRIBUTE_TYPE = 2 }; /* CUmemorytype, CUpointer_attribute */

typedef struct piece {
    struct piece *next;
    char *known, *reached, *view[GUARD_VIEWS];
    size_t size, mapped;
    int type;
    order_list list;
} piece;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static piece *pieces;
static int allocations, copies;

#pragma GCC visibility push(default)
int cuMemAlloc_v2(uint64_t *memory, size_t size);
int cuMemFree_v2(uint64_t memory);
int cuMemHostAlloc(void **memory, size_t size, unsigned flags);
int cuMemFreeHost(void *memory);
int cuPointerGetAttribute(void *out, int attribute, uint64_t memory);
int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t size);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, stream *s);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, stream *s);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, stream *s);
int cuStreamSynchronize(stream *s);
#pragma GCC visibility pop

/* Find the allocation with these bytes; NULL: unknown to the driver. The lock is held. */
static piece *find(const void *memory, size_t size)
{
    const char *at = memory;

    for (piece *p = pieces; p != NULL; p = p->next)
        if (at >= p->known && at + size <= p->known + p->size)
            return p;
    return NULL;
}

static int type_of(const void *memory, size_t size)
{
    const piece *p;
    int type;

    pthread_mutex_lock(&lock);
    p = find(memory, size);
    type = p != NULL ? p->type : 0;
    pthread_mutex_unlock(&lock);
    return type;
}

bool fake_on_device(const void *memory, size_t size)
{
    return type_of(memory, size) == TYPE_DEVICE;
}

void *fake_reach(const void *memory)
{
    const piece *p;
    char *at;

    pthread_mutex_lock(&lock);
    p = find(memory, 0);
    if (p == NULL)
        abort();
    at = p->reached + ((const char *)memory - p->known);
    pthread_mutex_unlock(&lock);
    return at;
}

void *memory_view(const void *memory, int number, size_t *rest)
{
    const piece *p;
    size_t offset;
    char *at;

    pthread_mutex_lock(&lock);
    p = find(memory, 0);
    if (p == NULL)
        abort();
    offset = (size_t)((const char *)memory - p->known);
    at = p->view[number % GUARD_VIEWS] != NULL ? p->view[number % GUARD_VIEWS] : p->reached;
    *rest = p->size - offset;
    pthread_mutex_unlock(&lock);
    return at + offset;
}

int fake_left_over_memory(void);
int fake_left_over_memory(void)
{
    int count = 0;

    pthread_mutex_lock(&lock);
    for (const piece *p = pieces; p != NULL; p = p->next)
        count++;
    pthread_mutex_unlock(&lock);
    return count;
}

/* ---- pages of the host ----------------------------------------------------------------------- */

/* Protect the whole pages of a range. */
static void protect(const piece *p, const order_record *r, int protection)
{
    size_t begin = (r->begin + PAGE - 1) / PAGE * PAGE, end = r->end / PAGE * PAGE;

    if (begin < end && mprotect(p->known + begin, end - begin, protection) != 0)
        abort();
}

/*
 * Protect pages in use: those that streams write are unreadable, those that they read are
 * read-only.
 */
static void settle_piece(piece *p)
{
    const order_record all = { 0, p->mapped - PAGE, 0, 0, false };

    protect(p, &all, PROT_READ | PROT_WRITE);
    for (int writes = 0; writes < 2; writes++)
        for (int i = 0; i < p->list.count; i++)
            if (p->list.record[i].actor != HOST && p->list.record[i].writes == (writes != 0)
                && !order_known(&p->list.record[i]))
                protect(p, &p->list.record[i], writes ? PROT_NONE : PROT_READ);
}

void memory_settle(void)
{
    pthread_mutex_lock(&lock);
    for (piece *p = pieces; p != NULL; p = p->next)
        if (p->type == TYPE_HOST)
            settle_piece(p);
    pthread_mutex_unlock(&lock);
}

bool memory_touch(int actor, const void *at, size_t size, bool writes)
{
    piece *p;

    if (size == 0)
        return true;
    pthread_mutex_lock(&lock);
    p = find(at, size);
    if (p != NULL) {
        size_t begin = (size_t)((const char *)at - p->known);
        order_touch(&p->list, actor, begin, begin + size, writes);
        if (p->type == TYPE_HOST)
            settle_piece(p);
    }
    pthread_mutex_unlock(&lock);
    return p != NULL;
}

/* ---- allocate and free ----------------------------------------------------------------------- */

/* Map the allocation without its guard page; NULL: out of memory. */
static char *map_once(const piece *p, int file)
{
    char *at = mmap(NULL, p->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    return at != MAP_FAILED && mprotect(at + p->mapped - PAGE, PAGE, PROT_NONE) == 0 ? at : NULL;
}

static bool map_views(piece *p, int file)
{
    for (int i = 0; i < GUARD_VIEWS; i++) {
        p->view[i] = map_once(p, file);
        if (p->view[i] == NULL)
            return false;
        guard_forbid(p->view[i], p->mapped);
    }
    return true;
}

static bool map_piece(piece *p)
{
    int file = memfd_create("fake-cuda", MFD_CLOEXEC);
    size_t body = (p->size + PAGE - 1) / PAGE * PAGE;
    bool mapped, of_device = p->type == TYPE_DEVICE;

    p->mapped = body + PAGE;
    if (file < 0 || ftruncate(file, (off_t)p->mapped) != 0)
        return false;
    p->known = map_once(p, file);
    p->reached = map_once(p, file);
    mapped = p->known != NULL && p->reached != NULL
          && (!of_device || !guard_is_there() || map_views(p, file));
    close(file);
    if (mapped)
        memset(p->reached, FILLING, body);
    return mapped && (!of_device || mprotect(p->known, p->mapped, PROT_NONE) == 0);
}

static void unmap_piece(piece *p)
{
    munmap(p->known, p->mapped);
    munmap(p->reached, p->mapped);
    for (int i = 0; i < GUARD_VIEWS; i++)
        if (p->view[i] != NULL) {
            guard_allow(p->view[i], p->mapped);
            munmap(p->view[i], p->mapped);
        }
}

/* The size is at most FAKE_CUDA_MOST. */
static bool has_room(size_t size)
{
    const char *most = getenv("FAKE_CUDA_MOST");

    return most == NULL || size <= strtoull(most, NULL, 10);
}

static int allocate(size_t size, int type, void **out)
{
    piece *p;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (size == 0)
        return INVALID;
    if (capture_refuses("to allocate memory") != OK)
        return CAPTURE_UNSUPPORTED;
    if (fake_fails("allocate", &allocations) || !has_room(size))
        return NO_MEMORY;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return NO_MEMORY;
    *p = (piece){ .size = size, .type = type };
    if (!map_piece(p)) {
        free(p);
        return NO_MEMORY;
    }
    pthread_mutex_lock(&lock);
    p->next = pieces;
    pieces = p;
    pthread_mutex_unlock(&lock);
    *out = p->known;
    return OK;
}

/* Free memory; the driver waits for pending work first. */
static int release(void *memory, int type)
{
    piece *found = NULL;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (capture_refuses("to free memory") != OK)
        return CAPTURE_UNSUPPORTED;
    stream_drain_all();
    pthread_mutex_lock(&lock);
    for (piece **at = &pieces; *at != NULL; at = &(*at)->next)
        if ((*at)->known == memory && (*at)->type == type) {
            found = *at;
            *at = found->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (found == NULL)
        return INVALID;
    unmap_piece(found);
    free(found->list.record);
    free(found);
    return OK;
}

int cuMemAlloc_v2(uint64_t *memory, size_t size)
{
    void *at = NULL;
    int result = allocate(size, TYPE_DEVICE, &at);

    *memory = (uint64_t)(uintptr_t)at;
    return result;
}

int cuMemFree_v2(uint64_t memory)
{
    return memory == 0 ? OK : release((void *)(uintptr_t)memory, TYPE_DEVICE);
}

int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
    return allocate(size, TYPE_HOST, memory);
}

int cuMemFreeHost(void *memory) { return release(memory, TYPE_HOST); }

int cuPointerGetAttribute(void *out, int attribute, uint64_t memory)
{
    int type = type_of((void *)(uintptr_t)memory, 1);

    if (attribute != ATTRIBUTE_TYPE || type == 0)
        return INVALID;
    memcpy(out, &type, sizeof type);
    return OK;
}

/* ---- synchronous copies ---------------------------------------------------------------------- */

/* The real calls may return early only if they write memory of the GPU. */

int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t size)
{
    void *at = (void *)(uintptr_t)memory;

    if (capture_refuses("cuMemsetD8") != OK)
        return CAPTURE_UNSUPPORTED;
    order_begin(DEFAULT_STREAM);
    if (!fake_on_device(at, size) || !memory_touch(DEFAULT_STREAM, at, size, true))
        return INVALID;
    memset(fake_reach(at), value, size);
    return OK;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
    void *at = (void *)(uintptr_t)to;

    if (capture_refuses("to copy at once") != OK)
        return CAPTURE_UNSUPPORTED;
    order_begin(DEFAULT_STREAM);
    if (fake_fails("copy", &copies) || !fake_on_device(at, size)
        || !memory_touch(DEFAULT_STREAM, at, size, true))
        return INVALID;
    memcpy(fake_reach(at), from, size);
    return OK;
}

/* ---- asynchronous copies --------------------------------------------------------------------- */

typedef struct copy {
    void *to;
    const void *from;
    size_t size;
    int way;                  /* direction, as watch.c reports it                                 */
    char taken[];             /* bytes from pageable host memory                                  */
} copy;

static void run_copy(void *context)
{
    copy *c = context;
    const fake_work work = { .way = c->way, .start = watch_clock() };

    memcpy(c->to, c->from != NULL ? c->from : c->taken, c->size);
    watch_tell(work);
    free(c);
}

static int way_of(const void *to, const void *from, size_t size)
{
    return !fake_on_device(from, size) ? 1 : !fake_on_device(to, size) ? 2 : 8;
}

/* Make a copy. Pageable host memory is read and written before the call returns. */
static copy *new_copy(void *to, const void *from, size_t size)
{
    bool plain = type_of(from, size) == 0;
    copy *c = malloc(sizeof *c + (plain ? size : 0));

    if (c == NULL)
        return NULL;
    *c = (copy){ type_of(to, size) == 0 ? to : fake_reach(to), plain ? NULL : fake_reach(from),
                 size, way_of(to, from, size) };
    if (plain)
        memcpy(c->taken, from, size);
    return c;
}

typedef struct copy_call {
    void *to;
    const void *from;
    size_t size;
} copy_call;

static int give_copy(stream *s, const void *what)
{
    const copy_call *k = what;
    copy *c;

    if (!fake_on_device(k->to, k->size) && !fake_on_device(k->from, k->size))
        return INVALID;
    c = new_copy(k->to, k->from, k->size);
    if (c == NULL)
        return NO_MEMORY;
    fake_stream_touch(s, k->from, k->size, false);
    fake_stream_touch(s, k->to, k->size, true);
    fake_stream_push(s, run_copy, c);
    return OK;
}

/* A captured copy runs later, when pageable memory may belong to something else. */
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, stream *s)
{
    const copy_call k = { (void *)(uintptr_t)to, (const void *)(uintptr_t)from, size };
    bool plain = type_of(k.to, size) == 0 || type_of(k.from, size) == 0;
    int result;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (fake_fails("copy", &copies) || s == NULL)
        return INVALID;
    if (plain && capture_refuses_stream(s, "a copy of memory that is not fixed") != OK)
        return CAPTURE_UNSUPPORTED;
    if (plain)
        fake_counts(FAKE_PLAIN_COPIES);
    result = stream_give(s, give_copy, &k, sizeof k);
    return result == OK && type_of(k.to, size) == 0 ? cuStreamSynchronize(s) : result;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, stream *s)
{
    if (!fake_on_device((void *)(uintptr_t)to, size) || type_of(from, size) != TYPE_HOST)
        return INVALID;
    return cuMemcpyAsync(to, (uint64_t)(uintptr_t)from, size, s);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, stream *s)
{
    if (!fake_on_device((void *)(uintptr_t)from, size) || type_of(to, size) != TYPE_HOST)
        return INVALID;
    return cuMemcpyAsync((uint64_t)(uintptr_t)to, from, size, s);
}
