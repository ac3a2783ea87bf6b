/*
 * nvtx.h - named ranges for profilers, by version 3 of NVIDIA's Tools Extension.
 */
#ifndef PLUGINS_DEVICES_CUDA_DRIVER_NVTX_H
#define PLUGINS_DEVICES_CUDA_DRIVER_NVTX_H

#include <stdint.h>

/* Ranges of the calling thread, as in pons_device_operations. */
void nvtx_range_begin(void *device, const char *name);
void nvtx_colored_range_begin(void *device, const char *name, uint32_t color);
void nvtx_range_end(void *device);

#endif
