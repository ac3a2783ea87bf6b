/*
 * cuda.c - a libcuda whose GPU is a thread for each stream.
 */
#include "fake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC visibility push(default)

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct { CUresult code; const char *name, *text; } errors[] = {
    { CUDA_SUCCESS, "CUDA_SUCCESS", "no error" },
    { CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
};

static const char *error_field(CUresult code, bool name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return name ? errors[i].name : errors[i].text;
    return NULL;
}

CUresult cuGetErrorName(CUresult code, const char **out)
{
    *out = error_field(code, true);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **out)
{
    *out = error_field(code, false);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- devices and contexts -------------------------------------------------------------------- */

enum { DEVICES = 8, DEPTH = 16 };

struct CUctx_st {
    int device;
};

static struct CUctx_st primary[DEVICES];
static _Thread_local CUcontext stack[DEPTH];
static _Thread_local int depth;

static int device_count(void)
{
    const char *text = getenv("FAKE_CUDA");

    if (text == NULL)
        return 1;
    return atoi(text) < DEVICES ? atoi(text) : DEVICES;
}

CUresult cuInit(unsigned flags)
{
    const char *text = getenv("FAKE_CUDA");

    return text != NULL && strcmp(text, "none") == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *out)
{
    *out = device_count();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *out, int index)
{
    if (index < 0 || index >= device_count())
        return CUDA_ERROR_INVALID_VALUE;
    *out = index;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    if (device < 0 || device >= device_count())
        return CUDA_ERROR_INVALID_VALUE;
    primary[device].device = device;
    *out = &primary[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (context == NULL || depth == DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = stack[--depth];
    return CUDA_SUCCESS;
}

bool fake_has_context(void)
{
    return depth > 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct piece {
    struct piece *next;
    char *memory;
    size_t size;
    CUmemorytype type;
} piece;

static pthread_mutex_t pieces_lock = PTHREAD_MUTEX_INITIALIZER;
static piece *pieces;
static atomic_int events;

static CUresult allocate(size_t size, CUmemorytype type, void **out)
{
    piece *p = malloc(sizeof *p);

    if (depth == 0 || size == 0 || p == NULL) {
        free(p);
        return depth == 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    }
    *p = (piece){ .memory = malloc(size), .size = size, .type = type };
    memset(p->memory, 0xa5, size);
    pthread_mutex_lock(&pieces_lock);
    p->next = pieces;
    pieces = p;
    pthread_mutex_unlock(&pieces_lock);
    *out = p->memory;
    return CUDA_SUCCESS;
}

static CUresult release(void *memory, CUmemorytype type)
{
    piece *found = NULL;

    pthread_mutex_lock(&pieces_lock);
    for (piece **at = &pieces; *at != NULL; at = &(*at)->next)
        if ((*at)->memory == memory && (*at)->type == type) {
            found = *at;
            *at = found->next;
            break;
        }
    pthread_mutex_unlock(&pieces_lock);
    if (found == NULL || depth == 0)
        return CUDA_ERROR_INVALID_VALUE;
    free(found->memory);
    free(found);
    return CUDA_SUCCESS;
}

static CUmemorytype type_of(const void *memory, size_t size)
{
    const char *first = memory;
    CUmemorytype type = 0;

    pthread_mutex_lock(&pieces_lock);
    for (const piece *p = pieces; p != NULL && type == 0; p = p->next)
        if (first >= p->memory && first + size <= p->memory + p->size)
            type = p->type;
    pthread_mutex_unlock(&pieces_lock);
    return type;
}

bool fake_on_device(const void *memory, size_t size)
{
    return type_of(memory, size) == CU_MEMORYTYPE_DEVICE;
}

int fake_left_over(void)
{
    int count = atomic_load(&events);

    pthread_mutex_lock(&pieces_lock);
    for (const piece *p = pieces; p != NULL; p = p->next)
        count++;
    pthread_mutex_unlock(&pieces_lock);
    return count;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    void *memory = NULL;
    CUresult code = allocate(size, CU_MEMORYTYPE_DEVICE, &memory);

    *out = (CUdeviceptr)(uintptr_t)memory;
    return code;
}

CUresult cuMemFree_v2(CUdeviceptr memory)
{
    return release((void *)(uintptr_t)memory, CU_MEMORYTYPE_DEVICE);
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    return allocate(size, CU_MEMORYTYPE_HOST, out);
}

CUresult cuMemFreeHost(void *memory)
{
    return release(memory, CU_MEMORYTYPE_HOST);
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr memory)
{
    CUmemorytype type = type_of((void *)(uintptr_t)memory, 1);

    if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE || type == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *(CUmemorytype *)out = type;
    return CUDA_SUCCESS;
}

/* ---- streams --------------------------------------------------------------------------------- */

typedef struct task {
    struct task *next;
    void (*run)(void *context);
    void *context;
} task;

struct CUstream_st {
    CUcontext context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    task *first, **last;
    bool closing;
};

static void *run_stream(void *context)
{
    CUstream s = context;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        task *t;
        while (s->first == NULL && !s->closing)
            pthread_cond_wait(&s->changed, &s->lock);
        t = s->first;
        if (t == NULL)
            break;
        pthread_mutex_unlock(&s->lock);
        t->run(t->context);
        pthread_mutex_lock(&s->lock);
        s->first = t->next;
        if (s->first == NULL)
            s->last = &s->first;
        free(t);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void fake_stream_push(CUstream s, void (*run)(void *context), void *context)
{
    task *t = malloc(sizeof *t);

    *t = (task){ .run = run, .context = context };
    pthread_mutex_lock(&s->lock);
    *s->last = t;
    s->last = &t->next;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    CUstream s = calloc(1, sizeof *s);

    if (depth == 0 || s == NULL) {
        free(s);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    s->context = stack[depth - 1];
    s->last = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    pthread_create(&s->thread, NULL, run_stream, s);
    *out = s;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream s)
{
    pthread_mutex_lock(&s->lock);
    while (s->first != NULL)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream s)
{
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream s, CUcontext *out)
{
    *out = s->context;
    return CUDA_SUCCESS;
}

/* ---- copies ---------------------------------------------------------------------------------- */

typedef struct copy {
    void *to;
    const void *from;
    size_t size;
} copy;

static void run_copy(void *context)
{
    copy *c = context;

    memcpy(c->to, c->from, c->size);
    free(c);
}

static CUresult push_copy(CUstream s, void *to, const void *from, size_t size, const void *device,
                          const void *host)
{
    copy *c;

    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!fake_on_device(device, size) || type_of(host, size) != CU_MEMORYTYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    c = malloc(sizeof *c);
    *c = (copy){ to, from, size };
    fake_stream_push(s, run_copy, c);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream s)
{
    void *device = (void *)(uintptr_t)to;

    return push_copy(s, device, from, size, device, from);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream s)
{
    void *device = (void *)(uintptr_t)from;

    return push_copy(s, to, device, size, device, to);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct CUevent_st {
    atomic_int recorded, reached;
    double time;
};

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = calloc(1, sizeof **out);
    atomic_fetch_add(&events, 1);
    return CUDA_SUCCESS;
}

static void reach(void *context)
{
    CUevent e = context;
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    e->time = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    atomic_fetch_add(&e->reached, 1);
}

CUresult cuEventQuery(CUevent e)
{
    return atomic_load(&e->reached) == atomic_load(&e->recorded) ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_NOT_READY;
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    atomic_fetch_add(&e->recorded, 1);
    fake_stream_push(s, reach, e);
    return CUDA_SUCCESS;
}

#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *out, CUevent from, CUevent to);

CUresult cuEventElapsedTime(float *out, CUevent from, CUevent to)
{
    if (cuEventQuery(from) != CUDA_SUCCESS || cuEventQuery(to) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_READY;
    *out = (float)(1e3 * (to->time - from->time));
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent e)
{
    if (depth == 0 || cuEventQuery(e) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    free(e);
    atomic_fetch_sub(&events, 1);
    return CUDA_SUCCESS;
}
