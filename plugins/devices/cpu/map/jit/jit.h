/*
 * jit.h - compiler of a pass's main program to machine code (jit.c).
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_JIT_JIT_H
#define PLUGINS_DEVICES_CPU_MAP_JIT_JIT_H

#include "cpu/map/map_internal.h"

/*
 * Set pass->quick to a program with the results of the main program on whole units. The bits are
 * equal, except for the choice between two NaN operands of a sum. pass->quick stays NULL if there
 * is nothing to gain, memory is short or the system refuses executable memory.
 */
void jit_compile(map_plan *plan, map_pass *pass);
/* Free the machine code; the plan owns the program. */
void jit_free(map_pass *pass);

#endif
