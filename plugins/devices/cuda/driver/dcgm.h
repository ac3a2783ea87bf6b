/*
 * dcgm.h - activity of a GPU's units through NVIDIA's Data Center GPU Manager (DCGM).
 */
#ifndef PLUGINS_DEVICES_CUDA_DRIVER_DCGM_H
#define PLUGINS_DEVICES_CUDA_DRIVER_DCGM_H

#include <pons/device.h>

typedef struct dcgm_fields dcgm_fields;

/*
 * Open libdcgm, connect to the host engine of this machine and watch the GPU with this PCI address.
 * NULL: there is no such library, engine or GPU.
 */
dcgm_fields *dcgm_fields_open(const char *address);
void dcgm_fields_close(dcgm_fields *f); /* NULL is allowed */
/* Set the members of DCGM; NaN where a value is not known, or with NULL. */
void dcgm_fields_read(const dcgm_fields *f, pons_device_sensors *out);

#endif
