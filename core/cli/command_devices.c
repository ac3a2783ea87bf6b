/*
 * command_devices.c - pons devices: the devices and communicators of this machine.
 */
#include "cli/command.h"

#include "cli/machine.h"

static pons_status run(const invocation *call, const void *flags, pons_error *err)
{
    return machine_print_devices(stdout, err);
}

const command command_devices = {
    "devices", "the devices of this machine, with memory", "", NULL, 0, "", 0, 0, run
};
