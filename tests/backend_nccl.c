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
    __typeof__(&cuMemAllocManaged) cuMemAllocManaged;
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
        FIND(library, cuMemAllocManaged);
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

/*
 * The trials write and read what they sum: memory that GPU and host both reach, which NCCL takes as
 * it is (its manual, 'Data Pointers'). It is slow, so no run has it.
 */
static void *allocate(size_t size)
{
    CUcontext before;
    CUdeviceptr memory = 0;

    driver.cuCtxPushCurrent(context);
    driver.cuMemAllocManaged(&memory, size, CU_MEM_ATTACH_GLOBAL);
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
    .plugin = "nccl", .stream = open_stream, .allocate = allocate, .release = release, .end = end
};
