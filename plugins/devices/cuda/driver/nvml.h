/*
 * nvml.h - sensors of a GPU through NVIDIA's management library (NVML).
 */
#ifndef PLUGINS_DEVICES_CUDA_DRIVER_NVML_H
#define PLUGINS_DEVICES_CUDA_DRIVER_NVML_H

#include <pons/device.h>

typedef struct nvml_sensors nvml_sensors;

/* Open libnvidia-ml and find the GPU with this PCI address; PONS_DEVICE with one line. */
pons_status nvml_sensors_open(const char *address, nvml_sensors **out, pons_error *err);
void nvml_sensors_close(nvml_sensors *s); /* NULL is allowed */
pons_status nvml_sensors_read(const nvml_sensors *s, pons_device_sensors *out, pons_error *err);
/* The reason why [log] device_every cannot read the GPU with this PCI address, or "". */
void nvml_sensors_describe(const char *address, char *text, size_t size);

#endif
