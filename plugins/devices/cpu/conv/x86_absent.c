/*
 * x86_absent.c - stands in for bf16_gemm, few_channels_amx and winograd where processors have
 * neither AMX nor AVX-512. The table of solvers leaves these out there.
 */
#include "cpu/conv/few_channels_amx/few_channels_amx.h"
#include "cpu/conv/winograd/winograd.h"

const gemm_engine engine_amx = { NULL, NULL, NULL, NULL }, engine_avx512_bf16 = { NULL, NULL, NULL,
    NULL };

const conv_operations few_channels_amx_operations = { .prepare = NULL },
                      few_channels_amx_gradient_operations = { .prepare = NULL },
                      bf16_gemm_operations = { .prepare = NULL },
                      bf16_gemm_gradient_operations = { .prepare = NULL },
                      winograd_operations = { .prepare = NULL },
                      winograd_gradient_operations = { .prepare = NULL };
