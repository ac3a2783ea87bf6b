/*
 * dcgm.h - activity of a GPU's units through NVIDIA's Data Center GPU Manager (DCGM).
 */
#ifndef PLUGINS_DEVICES_CUDA_DRIVER_DCGM_H
#define PLUGINS_DEVICES_CUDA_DRIVER_DCGM_H

#include <pons/device.h>

typedef struct dcgm_fields dcgm_fields;

/*
 * Open libdcgm and connect to the host engine of this machine, which then watches the fields of all
 * its GPUs, for the one with this PCI address. NULL: there is no such library, engine or GPU, or
 * this process has opened it.
 */
dcgm_fields *dcgm_fields_open(const char *address);
void dcgm_fields_close(dcgm_fields *f); /* NULL is allowed */
/* Set the members of DCGM; NaN where a value is not known, or with NULL. */
void dcgm_fields_read(const dcgm_fields *f, pons_device_sensors *out);

#endif
