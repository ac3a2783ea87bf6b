/*
 * nccl_driver.c - open the driver, bind its functions, see whether it answers and has a GPU.
 *
 * Functions are bound by the oldest name that has their present meaning: headers of CUDA 13 rename
 * some to versions that drivers of CUDA 12 lack. The library stays open: others in this process use
 * it as well, and it does not expect to be unloaded.
 */
#include "comms/nccl/nccl_driver.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

static const struct { const char *name; size_t offset; } functions[] = {
    { "cuInit", offsetof(nccl_driver, init) },
    { "cuDeviceGetCount", offsetof(nccl_driver, device_count) },
    { "cuGetErrorName", offsetof(nccl_driver, error_name) },
    { "cuGetErrorString", offsetof(nccl_driver, error_text) },
    { "cuCtxPushCurrent_v2", offsetof(nccl_driver, push) },
    { "cuCtxPopCurrent_v2", offsetof(nccl_driver, pop) },
    { "cuStreamGetCtx", offsetof(nccl_driver, stream_context) },
    { "cuEventCreate", offsetof(nccl_driver, event_new) },
    { "cuEventDestroy_v2", offsetof(nccl_driver, event_free) },
    { "cuEventRecord", offsetof(nccl_driver, event_record) },
    { "cuEventQuery", offsetof(nccl_driver, event_query) },
    { "cuEventElapsedTime", offsetof(nccl_driver, event_elapsed) },
    { "cuPointerGetAttribute", offsetof(nccl_driver, pointer_attribute) },
    { "cuMemAlloc_v2", offsetof(nccl_driver, device_new) },
    { "cuMemFree_v2", offsetof(nccl_driver, device_free) },
    { "cuMemHostAlloc", offsetof(nccl_driver, host_new) },
    { "cuMemFreeHost", offsetof(nccl_driver, host_free) },
    { "cuMemcpyHtoDAsync_v2", offsetof(nccl_driver, copy_to_device) },
    { "cuMemcpyDtoHAsync_v2", offsetof(nccl_driver, copy_to_host) },
};

static pons_status bind_all(nccl_driver *d, pons_error *err)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return pons_fail(err, PONS_DEVICE, "there is no NVIDIA driver on this machine: %s",
                         dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (function == NULL)
            return pons_fail(err, PONS_DEVICE, "the NVIDIA driver is too old: " LIBRARY " has no "
                             "function '%s'", functions[i].name);
        memcpy((char *)d + functions[i].offset, &function, sizeof function);
    }
    return PONS_OK;
}

pons_status nccl_driver_check(const nccl_driver *d, CUresult code, const char *what,
                              pons_error *err)
{
    const char *name = NULL, *text = NULL;

    if (code == CUDA_SUCCESS)
        return PONS_OK;
    d->error_name(code, &name);
    d->error_text(code, &text);
    return pons_fail(err, PONS_DEVICE, "%s: %s (%s)", what, text != NULL ? text : "unknown error",
                     name != NULL ? name : "no name");
}

pons_status nccl_driver_open(nccl_driver *out, pons_error *err)
{
    nccl_driver d;
    int count = 0;

    if (bind_all(&d, err) != PONS_OK
        || nccl_driver_check(&d, d.init(0), "the NVIDIA driver finds no GPU that it can use", err)
               != PONS_OK
        || nccl_driver_check(&d, d.device_count(&count), "the NVIDIA driver does not count its "
                             "GPUs", err) != PONS_OK)
        return err->status;
    if (count == 0)
        return pons_fail(err, PONS_DEVICE, "the NVIDIA driver has no GPU to offer\n"
                         "hint: CUDA_VISIBLE_DEVICES may hide all of them");
    *out = d;
    return PONS_OK;
}
