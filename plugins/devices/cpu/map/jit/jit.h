/*
 * jit.h - the main program of a pass as machine code (jit.c).
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_JIT_JIT_H
#define PLUGINS_DEVICES_CPU_MAP_JIT_JIT_H

#include "cpu/map/map_kernel.h"

/*
 * Puts into pass->quick a program that does the same to whole units as the main one, bit for bit,
 * but for which of two NaNs a sum keeps; leaves it NULL where there is nothing to gain, where
 * memory is short or where the system lets no memory be run that was written.
 */
void map_compile(map_plan *plan, map_pass *pass);
/* The code; the program itself is the plan's. */
void map_compiled_free(map_pass *pass);

#endif
