/*
 * interpreter_instruction.h - macros for instructions of the machine (interpreter.h), and the
 * instructions that other files define for interpreter.c.
 *
 * Every instruction ends with a call of the next one, with the eight registers of the accumulator
 * as arguments.
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_INTERPRETER_INTERPRETER_INSTRUCTION_H
#define PLUGINS_DEVICES_CPU_MAP_INTERPRETER_INTERPRETER_INSTRUCTION_H

#include "cpu/map/map_lanes.h"
#include "cpu/map/interpreter/interpreter_vector.h"

#define UNIT (8 * VECTOR_LANES)

#define REGISTERS                                                                                 \
    vector a0, vector a1, vector a2, vector a3, vector a4, vector a5, vector a6, vector a7
#define INSTRUCTION(name)                                                                         \
    static void name(const map_instruction *i, map_unit *u, REGISTERS)
/*
 * An instruction that interpreter.c names too. Hidden visibility lets its own file call it
 * directly.
 */
#define SHARED(name)                                                                              \
    __attribute__((visibility("hidden"))) void CPU_ISA_NAME(name)(const map_instruction *i,       \
                                                                  map_unit *u, REGISTERS)
#define NEXT ((instruction)i[1].run)(i + 1, u, a0, a1, a2, a3, a4, a5, a6, a7)
#define NOTHING                                                                                   \
    vector_all(0), vector_all(0), vector_all(0), vector_all(0), vector_all(0), vector_all(0),     \
        vector_all(0), vector_all(0)
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

typedef void (*instruction)(const map_instruction *i, map_unit *u, REGISTERS);

#define FLOATS(k) const vector_loose *m##k = map_at(u, &i->at[k]);

/*
 * Rare cases, such as units with missing lanes, have functions of their own: arrays and calls would
 * slow down the common case.
 */
#define PART static __attribute__((noinline)) void

/* Prefetch 'size' bytes at distances MAP_AHEAD and MAP_FAR_AHEAD from 'at'. */
LANE void prefetch_lines(const char *at, int size)
{
    VECTOR_UNROLL for (int line = 0; line < size; line += 64) {
        __builtin_prefetch(at + MAP_AHEAD + line, 0, 3);
        __builtin_prefetch(at + MAP_FAR_AHEAD + line, 0, 2);
    }
}

/* interpreter_memory.c */
SHARED(code_load_f32);
SHARED(code_load_even);
SHARED(code_load_bf16);
SHARED(code_load_u8);
SHARED(code_pair_first_f32);
SHARED(code_pair_second_f32);
SHARED(code_pair_first_bf16);
SHARED(code_pair_second_bf16);
SHARED(code_keep);
SHARED(code_store_bf16);
SHARED(code_stream_f32);
SHARED(code_stream_bf16);
SHARED(code_groups_f32);
SHARED(code_groups_bf16);
SHARED(code_store_groups_f32);
SHARED(code_store_groups_bf16);
SHARED(code_fetch_32);
SHARED(code_fetch_16);
SHARED(code_fetch_8);
SHARED(code_fetch_groups);
SHARED(code_fetch_interleaved);
/* interpreter_moments.c */
SHARED(code_moments);
SHARED(code_moments_f32);
SHARED(code_moments_f32_plus);
SHARED(code_moments_f32_plus_even);
SHARED(code_moments_bf16);
SHARED(code_moments_bf16_plus);
SHARED(code_moments_bf16_plus_even);

#endif
