/*
 * nvml.h - what NVIDIA's management library says of a card.
 */
#ifndef PLUGINS_DEVICES_CUDA_DRIVER_NVML_H
#define PLUGINS_DEVICES_CUDA_DRIVER_NVML_H

#include <pons/device.h>

typedef struct cuda_sensors cuda_sensors;

/* Find libnvidia-ml, and in it the card with this PCI address; PONS_DEVICE with one line. */
pons_status cuda_sensors_open(const char *address, cuda_sensors **out, pons_error *err);
void cuda_sensors_close(cuda_sensors *s); /* also NULL */
pons_status cuda_sensors_read(const cuda_sensors *s, pons_device_sensors *out, pons_error *err);
/* Why [log] device_every cannot read the card with this PCI address; "": it can. */
void cuda_sensors_describe(const char *address, char *text, size_t size);

#endif
