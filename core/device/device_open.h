/*
 * device_open.h - devices by name: a plugin of kind device, opened for one replica.
 */
#ifndef CORE_DEVICE_DEVICE_OPEN_H
#define CORE_DEVICE_DEVICE_OPEN_H

#include "graph/program/program.h"

/*
 * Open device plugin 'name' ("cpu"). 'where' (file:line of the INI value, or NULL) starts the
 * message when there is none of that name.
 */
pons_status device_open(const char *name, const pons_device_settings *settings, const char *where,
                        device *out, pons_error *err);
/* The same of a plugin that is there. One that lacks operations that it needs is refused. */
pons_status device_open_plugin(const struct plugin *p, const pons_device_settings *settings,
                               device *out, pons_error *err);
/* By the thread that will run kernels, once, before anything runs. */
pons_status device_attach(const device *d, pons_error *err);
/* All kernels of some programs are prepared, and it takes a while until the first of them runs. */
void device_compile(const device *d);
void device_close(device *d);

#endif
