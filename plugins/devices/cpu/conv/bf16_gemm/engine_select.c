/*
 * engine_select.c - which units of bf16_gemm.h run here.
 */
#include "cpu/isa.h"
#include "cpu/conv/bf16_gemm/bf16_gemm.h"

bool wide_dots_run(void) { return isa_runs(ISA_AVX512BF16); }
bool wide_tiles_run(void) { return isa_runs(ISA_AMX); }

const wide_unit *wide_find(void)
{
    return wide_tiles_run() ? &wide_tiles : wide_dots_run() ? &wide_dots : NULL;
}
