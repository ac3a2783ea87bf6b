/*
 * nccl_driver.h - the few functions of NVIDIA's driver that the plugin needs beside NCCL: contexts,
 * events, and copies of host memory. The driver comes with the machine and is no part of a build,
 * so it is opened when it is needed, and its absence is a line, not a plugin that does not load.
 */
#ifndef PLUGINS_COMMS_NCCL_NCCL_DRIVER_H
#define PLUGINS_COMMS_NCCL_NCCL_DRIVER_H

#include <cuda.h>
#include <pons/comm.h>

typedef struct nccl_driver {
    __typeof__(cuInit) *init;
    __typeof__(cuDeviceGetCount) *device_count;
    __typeof__(cuGetErrorName) *error_name;
    __typeof__(cuGetErrorString) *error_text;
    __typeof__(cuCtxPushCurrent) *push;
    __typeof__(cuCtxPopCurrent) *pop;
    __typeof__(cuStreamGetCtx) *stream_context;
    __typeof__(cuEventCreate) *event_new;
    __typeof__(cuEventDestroy) *event_free;
    __typeof__(cuEventRecord) *event_record;
    __typeof__(cuEventQuery) *event_query;
    __typeof__(cuEventElapsedTime) *event_elapsed; /* milliseconds                                */
    __typeof__(cuPointerGetAttribute) *pointer_attribute;
    __typeof__(cuMemAlloc) *device_new;
    __typeof__(cuMemFree) *device_free;
    __typeof__(cuMemHostAlloc) *host_new;
    __typeof__(cuMemFreeHost) *host_free;
    __typeof__(cuMemcpyHtoDAsync) *copy_to_device;
    __typeof__(cuMemcpyDtoHAsync) *copy_to_host;
} nccl_driver;

/* PONS_DEVICE and a line: no driver, one that is too old or does not answer, no GPU. */
pons_status nccl_driver_open(nccl_driver *out, pons_error *err);

/* PONS_OK for CUDA_SUCCESS, else a line that begins with 'what'. */
pons_status nccl_driver_check(const nccl_driver *d, CUresult code, const char *what,
                              pons_error *err);

#endif
