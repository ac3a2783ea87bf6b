/*
 * isa.h - the instruction sets by which kernels are chosen: those that this processor has, up to
 * the one that the build was configured to stop at.
 */
#ifndef PLUGINS_DEVICES_CPU_ISA_H
#define PLUGINS_DEVICES_CPU_ISA_H

#include <stdbool.h>

/* Each includes those before it. */
typedef enum isa { ISA_BASELINE, ISA_AVX2, ISA_AVX512, ISA_AVX512BF16, ISA_AMX } isa;

/* The last one that this build uses, whatever the processor has: configure --enable-isa-limit. */
isa isa_limit(void);
/* ISA_AMX also when Linux has handed the tile registers out. */
bool isa_runs(isa set);

#endif
