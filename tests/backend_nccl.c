/*
 * backend_nccl.c - tests of communicators run over nccl, on the GPU that tests/fake makes up or on
 * that of this machine.
 */
#include "comm_suite.h"
#include "fakes.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>

/* What cuda.h makes of a function's name is the name that its driver exports. */
#define TEXT(name) #name
#define FIND(library, name)                                                                       \
    do {                                                                                          \
        *(void **)&driver.name = dlsym(library, TEXT(name));                                      \
        found = found && driver.name != NULL;                                                     \
    } while (0)

static struct {
    __typeof__(&cuInit) cuInit;
    __typeof__(&cuDevicePrimaryCtxRetain) cuDevicePrimaryCtxRetain;
    __typeof__(&cuCtxPushCurrent) cuCtxPushCurrent;
    __typeof__(&cuCtxPopCurrent) cuCtxPopCurrent;
    __typeof__(&cuStreamCreate) cuStreamCreate;
    __typeof__(&cuStreamDestroy) cuStreamDestroy;
    __typeof__(&cuStreamSynchronize) cuStreamSynchronize;
    __typeof__(&cuMemAlloc) cuMemAlloc;
    __typeof__(&cuMemcpyAsync) cuMemcpyAsync;
    __typeof__(&cuMemFree) cuMemFree;
} driver;

/* Of this process; made after it was forked. */
static CUstream stream;
static CUcontext context;

static __attribute__((constructor)) void open_driver(void)
{
    void *library = fakes_open() ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
    bool found = library != NULL;

    if (found) {
        FIND(library, cuInit);
        FIND(library, cuDevicePrimaryCtxRetain);
        FIND(library, cuCtxPushCurrent);
        FIND(library, cuCtxPopCurrent);
        FIND(library, cuStreamCreate);
        FIND(library, cuStreamDestroy);
        FIND(library, cuStreamSynchronize);
        FIND(library, cuMemAlloc);
        FIND(library, cuMemcpyAsync);
        FIND(library, cuMemFree);
    }
    if (!found) {
        fputs("no driver that has all functions\n", stderr);
        exit(1);
    }
}

static void *open_stream(void)
{
    CUcontext before;

    if (stream != NULL)
        return stream;
    driver.cuInit(0);
    driver.cuDevicePrimaryCtxRetain(&context, 0);
    driver.cuCtxPushCurrent(context);
    driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    driver.cuCtxPopCurrent(&before);
    return stream;
}

/* Plain memory of the GPU, as a run has it: managed memory can hang a GPU for all its users. */
static void *allocate(size_t size)
{
    CUcontext before;
    CUdeviceptr memory = 0;

    driver.cuCtxPushCurrent(context);
    driver.cuMemAlloc(&memory, size);
    driver.cuCtxPopCurrent(&before);
    return (void *)(uintptr_t)memory;
}

static void release(void *memory)
{
    CUcontext before;

    driver.cuCtxPushCurrent(context);
    if (memory != NULL)
        driver.cuMemFree((CUdeviceptr)(uintptr_t)memory);
    driver.cuCtxPopCurrent(&before);
}

/* Copy after all work of the stream. */
static void copy(void *to, const void *from, size_t size)
{
    CUcontext before;

    driver.cuCtxPushCurrent(context);
    driver.cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, size, stream);
    driver.cuStreamSynchronize(stream);
    driver.cuCtxPopCurrent(&before);
}

/* The communicator has given back what it took. */
static pons_status end(pons_error *err)
{
    int left = fakes_left_over();

    driver.cuStreamDestroy(stream);
    stream = NULL;
    return left == 0 ? PONS_OK
                     : pons_fail(err, PONS_FAILURE, "%d pieces of memory or events are left", left);
}

const comm_backend comm_backend_tested = {
    .plugin = "nccl", .stream = open_stream, .allocate = allocate, .release = release, .copy = copy,
    .end = end
};
