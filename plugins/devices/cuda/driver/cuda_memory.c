/*
 * cuda_memory.c - device memory, and pinned host memory for asynchronous copies.
 */
#include "cuda/cuda.h"

#include "base/integer.h"

void *cuda_allocate(void *device, size_t size, pons_error *err)
{
    cuda_device *d = device;
    size_t room = size > 0 ? round_up_size(size, 4096) : 4096;
    cuda_address memory = 0;

    if (cuda_check(d, d->driver.use(d->context), "use the GPU", err) != PONS_OK
        || cuda_check(d, d->driver.allocate(&memory, room), "allocate memory", err) != PONS_OK)
        return NULL;
    if (cuda_check(d, d->driver.clear(memory, 0, room), "clear memory", err) != PONS_OK
        || cuda_check(d, d->driver.stream_wait(NULL), "clear memory", err) != PONS_OK) {
        d->driver.free(memory);
        return NULL;
    }
    return (void *)(uintptr_t)memory;
}

void cuda_release(void *device, void *memory, size_t size)
{
    cuda_device *d = device;

    if (memory == NULL)
        return;
    d->driver.use(d->context);
    d->driver.free((cuda_address)(uintptr_t)memory);
}

void *cuda_allocate_host(void *device, size_t size, pons_error *err)
{
    cuda_device *d = device;
    void *memory = NULL;

    if (cuda_check(d, d->driver.use(d->context), "use the GPU", err) != PONS_OK
        || cuda_check(d, d->driver.host_new(&memory, size > 0 ? size : 1, 0),
                      "allocate host memory", err) != PONS_OK)
        return NULL;
    return memory;
}

void cuda_release_host(void *device, void *memory, size_t size)
{
    cuda_device *d = device;

    if (memory == NULL)
        return;
    d->driver.use(d->context);
    d->driver.host_free(memory);
}

pons_status cuda_copy(void *device, pons_stream stream, void *to, const void *from, size_t size,
                      pons_error *err)
{
    cuda_device *d = device;

    if (cuda_check(d, d->driver.use(d->context), "use the GPU", err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.copy((cuda_address)(uintptr_t)to, (cuda_address)(uintptr_t)from,
                                        size, d->stream[stream]), "copy memory", err);
}
