/*
 * device_open.h - open a device plugin for one replica.
 */
#ifndef CORE_DEVICE_DEVICE_OPEN_H
#define CORE_DEVICE_DEVICE_OPEN_H

#include "graph/program/program.h"

/*
 * Open device plugin 'name' ("cpu"). 'where' is the file:line of the INI value, or NULL; it begins
 * the message about a missing plugin.
 */
pons_status device_open(const char *name, const pons_device_settings *settings, const char *where,
                        device *out, pons_error *err);
/* The same with a loaded plugin. A plugin that lacks required operations is refused. */
pons_status device_open_plugin(const struct plugin *p, const pons_device_settings *settings,
                               device *out, pons_error *err);
/* Call once in the thread that will run kernels, before any kernel. */
pons_status device_attach(const device *d, pons_error *err);
/* Hint that all kernels of some programs are prepared, and that it is time to compile them. */
void device_compile(const device *d);
void device_close(device *d);

#endif
