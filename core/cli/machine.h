/*
 * machine.h - devices and communicators of this machine, as lines for the user.
 */
#ifndef CORE_CLI_MACHINE_H
#define CORE_CLI_MACHINE_H

#include <pons/plugin.h>
#include <stdio.h>

/* Print a line for each device, and the reason for each device plugin that finds none. */
pons_status machine_print_devices(FILE *to, pons_error *err);
/* Print a line for each comm plugin: that it is ready, or the missing part of its library. */
pons_status machine_print_comms(FILE *to, pons_error *err);

#endif
