/*
 * device_wrong_flip - a device for tests in host memory. The core's reference kernels compute
 * everything but flips, which the device replaces by copies.
 */
#include <pons/device.h>

#include <stdlib.h>
#include <string.h>

static char handle;

static pons_status open_device(const pons_device_settings *settings, void **device, pons_error *err)
{
    *device = &handle;
    return PONS_OK;
}

static void close_device(void *device)
{
}

static void facts(void *device, pons_device_facts *out)
{
    *out = (pons_device_facts){ .name = "device_wrong_flip", .threads = 1, .host_memory = true };
}

static void *allocate(void *device, size_t size, pons_error *err)
{
    void *memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

    if (memory == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    else
        memset(memory, 0, size);
    return memory;
}

static void release(void *device, void *memory, size_t size)
{
    free(memory);
}

static pons_status attach(void *device, pons_error *err)
{
    return PONS_OK;
}

static pons_status run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    memcpy(call->output[0], call->input[0], *(const size_t *)kernel->state);
    return PONS_OK;
}

static void free_kernel(pons_kernel *kernel)
{
    free(kernel->state);
}

static pons_status prepare(void *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    size_t *size;

    *supported = request->kind == PONS_KERNEL_FLIP;
    if (!*supported)
        return PONS_OK;
    size = malloc(sizeof *size);
    if (size == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    *size = sizeof(float);
    for (int a = 0; a < request->input[0].shape.rank; a++)
        *size *= (size_t)request->input[0].shape.extent[a];
    *kernel = (pons_kernel){ .run = run, .free = free_kernel, .state = size,
                             .implementation = "flip" };
    return PONS_OK;
}

static const pons_device_operations operations = {
    .open = open_device, .close = close_device, .facts = facts, .attach = attach,
    .prepare = prepare, .memory = { .allocate = allocate, .release = release }
};

PONS_DEVICE(device_wrong_flip, "1.0", "copies instead of mirroring", PONS_NO_OPTIONS, operations);
