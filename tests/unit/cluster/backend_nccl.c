/*
 * backend_nccl.c - runs the tests of communicators over NCCL, on the made-up GPU of tests/fake or
 * on the GPU of this machine.
 */
#include "support/graph/fakes.h"
#include "support/run/comm_suite.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>

/* The macros of cuda.h turn a function's name into the name that the driver exports. */
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

/* Each process makes its own after the fork. */
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

/* Device memory of the GPU, as in a run: managed memory can hang a GPU for all its users. */
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

/* The copy waits for all work of the stream. */
static void copy(void *to, const void *from, size_t size)
{
    CUcontext before;

    driver.cuCtxPushCurrent(context);
    driver.cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, size, stream);
    driver.cuStreamSynchronize(stream);
    driver.cuCtxPopCurrent(&before);
}

/* Check that the communicator has freed everything that it allocated. */
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
