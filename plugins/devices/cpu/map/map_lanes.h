/*
 * map_lanes.h - names of the objects that are compiled once for each instruction set.
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_MAP_LANES_H
#define PLUGINS_DEVICES_CPU_MAP_MAP_LANES_H

#include "cpu/map/map_internal.h"

#define CPU_ISA_PASTE_(a, b) a##_##b
#define CPU_ISA_PASTE(a, b) CPU_ISA_PASTE_(a, b)
#define CPU_ISA_NAME(a) CPU_ISA_PASTE(a, CPU_ISA)
#define CPU_ISA_QUOTE(a) #a
#define CPU_ISA_QUOTED(a) CPU_ISA_QUOTE(a)
#define CPU_ISA_TEXT CPU_ISA_QUOTED(CPU_ISA)

#define MAP_LANES_OF(row)                                                                         \
    extern const map_machine map_machine_##row;                                                   \
    extern const map_lanes map_lanes_##row;                                                       \
    void map_uniform_##row(float *to, int64_t first, int n, uint64_t stream,                      \
                           const pons_step_key *step_key);                                        \
    void map_normal_##row(float *to, int64_t first, int n, uint64_t stream,                       \
                          const pons_step_key *step_key);

MAP_LANES_OF(baseline)
MAP_LANES_OF(avx2)
MAP_LANES_OF(avx512)
MAP_LANES_OF(avx512bf16)

#endif
