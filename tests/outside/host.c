/*
 * host - the smallest device: host memory and no kernels, so that the core runs its reference
 * kernels. Built outside the source tree with the installed headers alone.
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
    *out = (pons_device_facts){ .name = "host", .threads = 1, .host_memory = true };
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

static pons_status prepare(void *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}

static const pons_device_operations operations = {
    .open = open_device, .close = close_device, .facts = facts, .attach = attach,
    .prepare = prepare, .memory = { .allocate = allocate, .release = release }
};

PONS_DEVICE(host, "1.0", "memory of the host and reference kernels", PONS_NO_OPTIONS, operations);
