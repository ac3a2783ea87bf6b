/*
 * cpu_testing.h - changes of an open cpu device by tests and benches. They apply to kernels that
 * are prepared afterwards.
 */
#ifndef PLUGINS_DEVICES_CPU_CPU_TESTING_H
#define PLUGINS_DEVICES_CPU_CPU_TESTING_H

#include "cpu/cpu.h"

/*
 * Select the instruction set. A set that the processor lacks is allowed if kernels are only
 * prepared.
 */
void cpu_device_choose_isa(void *device, isa set);
/* Select the highest set with this row of isa_map_lanes. */
void cpu_device_choose_row(void *device, int row);
/* Run maps in the interpreter, as on a system that refuses executable memory. */
void cpu_device_interpret(void *device);
/* Store outputs of maps of any size non-temporally. */
void cpu_device_store_non_temporal(void *device);

#endif
