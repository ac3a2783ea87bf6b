/*
 * nvtx.h - named ranges for profilers, by version 3 of NVIDIA's Tools Extension.
 */
#ifndef PLUGINS_DEVICES_CUDA_DRIVER_NVTX_H
#define PLUGINS_DEVICES_CUDA_DRIVER_NVTX_H

/* Of the calling thread; as pons_device_operations has them. */
void cuda_begin_range(void *device, const char *name);
void cuda_end_range(void *device);

#endif
