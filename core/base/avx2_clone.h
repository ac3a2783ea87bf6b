/*
 * avx2_clone.h - compile a loop a second time for AVX2 with FMA, and choose by the processor.
 *
 * A loop is an AVX2_BODY that two functions call, one of them an AVX2_CLONE. Both have the same
 * bits: the compiler fuses no product with a sum (-ffp-contract=off), and fmaf rounds once
 * wherever it is computed.
 */
#ifndef CORE_BASE_AVX2_CLONE_H
#define CORE_BASE_AVX2_CLONE_H

#include <stdbool.h>

#define AVX2_BODY static inline __attribute__((always_inline))

#ifdef __x86_64__
#define AVX2_CLONE __attribute__((target("avx2,fma"))) static

static inline bool avx2_clone_runs(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define AVX2_CLONE static

static inline bool avx2_clone_runs(void)
{
    return false;
}
#endif

/* Unroll the following loop, whose count is constant, so that a loop around it vectorises. */
#define AVX2_UNROLL _Pragma("GCC unroll 16")

/* The choice between two functions of one type. */
#define AVX2_CHOOSE(CLONE, PLAIN) (avx2_clone_runs() ? (CLONE) : (PLAIN))

#endif
