/*
 * machine.h - what this machine offers, as lines for a person.
 */
#ifndef CORE_CLI_MACHINE_H
#define CORE_CLI_MACHINE_H

#include <pons/plugin.h>
#include <stdio.h>

/* A line for each device, and one for each device plugin that finds none: why. */
pons_status machine_print_devices(FILE *to, pons_error *err);
/* A line for each comm plugin: ready, or what its library misses. */
pons_status machine_print_comms(FILE *to, pons_error *err);

#endif
