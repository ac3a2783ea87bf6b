/*
 * engine_select.c - the engine of bf16_gemm.h for an instruction set.
 */
#include "cpu/conv/bf16_gemm/bf16_gemm.h"

const gemm_engine *bf16_gemm_engine(isa set)
{
    return set >= ISA_AMX ? &engine_amx : set >= ISA_AVX512BF16 ? &engine_avx512_bf16 : NULL;
}
