/*
 * isa_rows.h - the compiled kernels by instruction set, the best set last.
 */
#ifndef PLUGINS_DEVICES_CPU_ISA_ROWS_H
#define PLUGINS_DEVICES_CPU_ISA_ROWS_H

#include "cpu/isa.h"

/* The count of rows built, and of those that this processor can run. */
int isa_rows_built(void);
int isa_rows_count(void);
const struct map_lanes *isa_map_lanes(int row);
const struct direct_lanes *isa_direct_lanes(int row);
const struct row_loops *isa_row_loops(int row);
/* Pairs of bf16 are multiplied where ISA_AVX512BF16 is the best set, not beside tile registers. */
const struct few_channels_loops *isa_few_channels_loops(isa set);
/* True if this processor has bf16 dot products. */
bool isa_has_bf16(void);

#endif
