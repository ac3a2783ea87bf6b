/*
 * vector.h - one vector of floats, of the widest registers of the target instruction set.
 */
#ifndef PLUGINS_DEVICES_CPU_SIMD_VECTOR_H
#define PLUGINS_DEVICES_CPU_SIMD_VECTOR_H

#if defined(__AVX512F__)
#include <immintrin.h>
enum { VECTOR_LANES = 16 };
#elif defined(__FMA__)
#include <immintrin.h>
enum { VECTOR_LANES = 8 };
#else
enum { VECTOR_LANES = 4 };
#endif

typedef float vector __attribute__((vector_size(4 * VECTOR_LANES)));
typedef float vector_loose __attribute__((vector_size(4 * VECTOR_LANES), aligned(4), may_alias));

/* Unroll the following loop, whose count is constant, so that its arrays become registers. */
#define VECTOR_UNROLL _Pragma("GCC unroll 32")

#define VECTOR static inline __attribute__((always_inline))

VECTOR vector vector_load(const float *p) { return (vector)*(const vector_loose *)p; }
VECTOR void vector_store(float *p, vector v) { *(vector_loose *)p = (vector_loose)v; }

/*
 * a b + c, fused where the processor can. With VECTOR_BF16X2 each element of a and b holds two bf16
 * values, and both products are added; such elements may only be loaded and broadcast.
 */
#if defined(VECTOR_BF16X2)
VECTOR vector vector_all(float x) { return _mm512_set1_ps(x); }
VECTOR vector vector_fused(vector a, vector b, vector c)
{
    return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
}
#else
VECTOR vector vector_all(float x) { return x - (vector){ 0 }; }
#if defined(__AVX512F__)
VECTOR vector vector_fused(vector a, vector b, vector c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__FMA__)
VECTOR vector vector_fused(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); }
#else
VECTOR vector vector_fused(vector a, vector b, vector c) { return a * b + c; }
#endif
#endif

#endif
