/*
 * isa.h - the instruction sets by which kernels are selected: those of this processor, up to the
 * limit of configure --enable-isa-limit.
 */
#ifndef PLUGINS_DEVICES_CPU_ISA_H
#define PLUGINS_DEVICES_CPU_ISA_H

#include <stdbool.h>

/* Each includes those before it. */
typedef enum isa { ISA_BASELINE, ISA_AVX2, ISA_AVX512, ISA_AVX512BF16, ISA_AMX } isa;

/*
 * The highest set that this build uses, independent of the processor (configure
 * --enable-isa-limit).
 */
isa isa_limit(void);
/*
 * True if this build uses the set, this processor has it and, for AMX, Linux grants the tile
 * registers.
 */
bool isa_runs(isa set);
/* The highest set that runs on this processor. */
isa isa_best(void);

#endif
