/*
 * backend_nccl.c - tests of communicators run over nccl, on a GPU that tests/fake makes up.
 */
#include "comm_suite.h"

#include "fake/fake.h"

#include <cuda.h>

/* Of this process; made after it was forked. */
static CUstream stream;
static CUcontext context;

static void *open_stream(void)
{
    CUcontext before;

    if (stream != NULL)
        return stream;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxPushCurrent(context);
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cuCtxPopCurrent(&before);
    return stream;
}

static void *allocate(size_t size)
{
    CUcontext before;
    CUdeviceptr memory;

    cuCtxPushCurrent(context);
    cuMemAllocManaged(&memory, size, CU_MEM_ATTACH_GLOBAL); /* a test looks at it */
    cuCtxPopCurrent(&before);
    return (void *)(uintptr_t)memory;
}

static void release(void *memory)
{
    CUcontext before;

    cuCtxPushCurrent(context);
    if (memory != NULL)
        cuMemFree((CUdeviceptr)(uintptr_t)memory);
    cuCtxPopCurrent(&before);
}

/* The communicator has given back what it took. */
static pons_status end(pons_error *err)
{
    int left = fake_left_over();

    cuStreamDestroy(stream);
    stream = NULL;
    return left == 0 ? PONS_OK
                     : pons_fail(err, PONS_FAILURE, "%d pieces of memory or events are left", left);
}

const comm_backend comm_backend_tested = {
    .plugin = "nccl", .stream = open_stream, .allocate = allocate, .release = release, .end = end
};
