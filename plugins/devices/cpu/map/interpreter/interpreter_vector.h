/*
 * interpreter_vector.h - the vectors of the map machine: one register full of floats.
 *
 * Sums, products and quotients are the compiler's operators on vectors. Selects by a comparison and
 * conversions of bf16 have code for each instruction set. All of them give the bits of lane_math.h.
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_INTERPRETER_INTERPRETER_VECTOR_H
#define PLUGINS_DEVICES_CPU_MAP_INTERPRETER_INTERPRETER_VECTOR_H

#include "cpu/simd/lane_math.h"
#include "cpu/simd/vector.h"

typedef uint32_t vector_bits __attribute__((vector_size(4 * VECTOR_LANES)));
typedef uint32_t vector_bits_loose
    __attribute__((vector_size(4 * VECTOR_LANES), aligned(2), may_alias));

/* Clear the upper halves of vector registers, which otherwise slow down SSE code. */
#if defined(__AVX__)
#define VECTOR_LEAVE() __builtin_ia32_vzeroupper()
#else
#define VECTOR_LEAVE() ((void)0)
#endif

/* Order non-temporal stores before all later stores. */
#if defined(__SSE__)
#define VECTOR_FENCE() __builtin_ia32_sfence()
#else
#define VECTOR_FENCE() ((void)0)
#endif

#if defined(__AVX512F__)

#define VECTOR_COMPARE(name, code)                                                                \
    LANE vector vector_select_##name(vector p, vector q, vector b, vector c)                      \
    {                                                                                             \
        return (vector)_mm512_mask_blend_ps(                                                      \
            _mm512_cmp_ps_mask((__m512)p, (__m512)q, code), (__m512)c, (__m512)b);                \
    }                                                                                             \
    LANE vector vector_test_##name(vector p, vector q)                                            \
    {                                                                                             \
        return (vector)_mm512_maskz_mov_ps(                                                       \
            _mm512_cmp_ps_mask((__m512)p, (__m512)q, code), _mm512_set1_ps(1.0f));                \
    }
VECTOR_COMPARE(equal, _CMP_EQ_OQ)
VECTOR_COMPARE(not_equal, _CMP_NEQ_UQ)
VECTOR_COMPARE(greater, _CMP_GT_OQ)
VECTOR_COMPARE(greater_equal, _CMP_GE_OQ)

LANE vector vector_sqrt(vector x) { return (vector)_mm512_sqrt_ps((__m512)x); }

/* Load two vectors: one permutation moves each word to the upper half of a float. */
LANE void vector_from_bf16(const uint16_t *m, vector *a, vector *b)
{
    static const uint16_t place[64] = { 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9,
                                        0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15, 0, 16, 0, 17, 0,
                                        18, 0, 19, 0, 20, 0, 21, 0, 22, 0, 23, 0, 24, 0, 25, 0, 26,
                                        0, 27, 0, 28, 0, 29, 0, 30, 0, 31 };
    __m512i words = _mm512_loadu_si512(m);

    *a = (vector)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_loadu_si512(place), words);
    *b = (vector)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_loadu_si512(place + 32), words);
}

/* Load one vector. */
LANE vector vector_one_from_bf16(const uint16_t *m)
{
    __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)m));

    return (vector)_mm512_slli_epi32(words, 16);
}

LANE vector vector_from_u8(const uint8_t *m)
{
    __m512i words = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)m));

    return (vector)_mm512_cvtepi32_ps(words);
}

/* Every other element, from the first or the second on. */
LANE vector vector_deinterleave_f32(const float *m, int second)
{
    static const int32_t place[2][16] = {
        { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 },
        { 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31 },
    };

    return (vector)_mm512_permutex2var_ps(_mm512_loadu_ps(m), _mm512_loadu_si512(place[second]),
                                          _mm512_loadu_ps(m + 16));
}

/* Round to nearest even in the upper half; wrong for NaN. */
LANE __m512i vector_round_bf16(vector x)
{
    __m512i u = (__m512i)x, r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
    __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));

    return _mm512_mask_add_epi32(r, odd, r, _mm512_set1_epi32(1));
}

LANE __m512i vector_keep_nan(vector x, __m512i rounded)
{
    return _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q),
                                (__m512i)x, _mm512_set1_epi32(0x400000));
}

LANE __m512i vector_upper_halves(__m512i x, __m512i y)
{
    static const uint16_t upper[32] = { 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                        33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59,
                                        61, 63 };

    return _mm512_permutex2var_epi16(x, _mm512_loadu_si512(upper), y);
}

typedef __m512i vector_bf16;

/* Round two vectors to bf16. */
LANE vector_bf16 vector_bf16_of(vector a, vector b)
{
    return vector_upper_halves(vector_keep_nan(a, vector_round_bf16(a)),
                               vector_keep_nan(b, vector_round_bf16(b)));
}

#if defined(__AVX512BF16__)

/* True if there are subnormal values, which 'quick' flushes to zero. */
LANE int vector_needs_care(vector a, vector b)
{
    return _mm512_fpclass_ps_mask((__m512)a, 0x20) | _mm512_fpclass_ps_mask((__m512)b, 0x20);
}

LANE vector_bf16 vector_bf16_quick(vector a, vector b)
{
    return (__m512i)_mm512_cvtne2ps_pbh((__m512)b, (__m512)a);
}

LANE void vector_one_to_bf16_quick(uint16_t *m, vector x)
{
    _mm256_storeu_si256((__m256i *)m, (__m256i)_mm512_cvtneps_pbh((__m512)x));
}

#else

/* True if there is a NaN, which 'quick' rounds wrongly. */
LANE int vector_needs_care(vector a, vector b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q);
}

LANE vector_bf16 vector_bf16_quick(vector a, vector b)
{
    return vector_upper_halves(vector_round_bf16(a), vector_round_bf16(b));
}

LANE void vector_one_to_bf16_quick(uint16_t *m, vector x)
{
    __m512i words = _mm512_srli_epi32(vector_round_bf16(x), 16);

    _mm256_storeu_si256((__m256i *)m, _mm512_cvtepi32_epi16(words));
}

#endif

LANE void vector_store_bf16(uint16_t *m, vector_bf16 x) { _mm512_storeu_si512(m, x); }

/* Non-temporal stores; 'to' is aligned to the vector's size. */
LANE void vector_stream(float *to, vector x) { _mm512_stream_ps(to, (__m512)x); }
LANE void vector_stream_bf16(uint16_t *to, vector_bf16 x)
{
    _mm512_stream_si512((__m512i *)to, x);
}

#else

/* 'quick' is exact for all values. */
LANE int vector_needs_care(vector a, vector b) { return (void)a, (void)b, 0; }
#define vector_bf16_quick vector_bf16_of
#define vector_one_to_bf16_quick vector_one_to_bf16

#define VECTOR_COMPARE(name, sign)                                                                \
    LANE vector vector_select_##name(vector p, vector q, vector b, vector c)                      \
    {                                                                                             \
        vector_bits mask = (vector_bits)(p sign q);                                               \
        return (vector)((mask & (vector_bits)b) | (~mask & (vector_bits)c));                      \
    }                                                                                             \
    LANE vector vector_test_##name(vector p, vector q)                                            \
    {                                                                                             \
        return (vector)((vector_bits)(p sign q) & (vector_bits)vector_all(1.0f));                  \
    }
VECTOR_COMPARE(equal, ==)
VECTOR_COMPARE(not_equal, !=)
VECTOR_COMPARE(greater, >)
VECTOR_COMPARE(greater_equal, >=)

#if defined(__AVX2__)

LANE vector vector_sqrt(vector x) { return (vector)_mm256_sqrt_ps((__m256)x); }

LANE vector vector_widen(__m128i words)
{
    return (vector)_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16);
}

LANE vector vector_one_from_bf16(const uint16_t *m)
{
    return vector_widen(_mm_loadu_si128((const __m128i *)m));
}

LANE void vector_from_bf16(const uint16_t *m, vector *a, vector *b)
{
    *a = vector_widen(_mm_loadu_si128((const __m128i *)m));
    *b = vector_widen(_mm_loadu_si128((const __m128i *)m + 1));
}

LANE vector vector_from_u8(const uint8_t *m)
{
    return (vector)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)m)));
}

LANE vector vector_deinterleave_f32(const float *m, int second)
{
    __m256 low = _mm256_loadu_ps(m), high = _mm256_loadu_ps(m + 8);
    __m256 each = second ? _mm256_shuffle_ps(low, high, 0xdd) : _mm256_shuffle_ps(low, high, 0x88);

    return (vector)_mm256_permute4x64_pd((__m256d)each, 0xd8);
}

LANE vector_bits vector_round_bf16(vector x)
{
    vector_bits u = (vector_bits)x, none = (vector_bits)(x != x);
    vector_bits even = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;

    return (none & ((u >> 16) | 0x40u)) | (~none & even);
}

typedef __m256i vector_bf16;

LANE vector_bf16 vector_bf16_of(vector a, vector b)
{
    __m256i both = _mm256_packus_epi32((__m256i)vector_round_bf16(a),
                                       (__m256i)vector_round_bf16(b));

    return _mm256_permute4x64_epi64(both, 0xd8);
}

LANE void vector_store_bf16(uint16_t *m, vector_bf16 x)
{
    _mm256_storeu_si256((__m256i *)m, x);
}

LANE void vector_one_to_bf16(uint16_t *m, vector x)
{
    __m256i words = (__m256i)vector_round_bf16(x);
    __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0xd8);

    _mm_storeu_si128((__m128i *)m, _mm256_castsi256_si128(both));
}

LANE void vector_stream(float *to, vector x) { _mm256_stream_ps(to, (__m256)x); }
LANE void vector_stream_bf16(uint16_t *to, vector_bf16 x)
{
    _mm256_stream_si256((__m256i *)to, x);
}

#else

LANE vector vector_sqrt(vector x)
{
    for (int i = 0; i < VECTOR_LANES; i++)
        x[i] = __builtin_sqrtf(x[i]);
    return x;
}

LANE vector vector_from_u8(const uint8_t *m)
{
    vector x;

    for (int i = 0; i < VECTOR_LANES; i++)
        x[i] = (float)m[i];
    return x;
}

LANE vector vector_deinterleave_f32(const float *m, int second)
{
    vector x;

    for (int i = 0; i < VECTOR_LANES; i++)
        x[i] = m[2 * i + second];
    return x;
}

LANE vector vector_one_from_bf16(const uint16_t *m)
{
    vector_bits u = { 0 };

    for (int i = 0; i < VECTOR_LANES; i++)
        u[i] = m[i];
    return (vector)(u << 16);
}

LANE void vector_one_to_bf16(uint16_t *m, vector x)
{
    for (int i = 0; i < VECTOR_LANES; i++)
        m[i] = lane_to_bf16(x[i]);
}

LANE void vector_from_bf16(const uint16_t *m, vector *a, vector *b)
{
    vector_bits u = { 0 }, v = { 0 };

    for (int i = 0; i < VECTOR_LANES; i++) {
        u[i] = m[i];
        v[i] = m[i + VECTOR_LANES];
    }
    *a = (vector)(u << 16);
    *b = (vector)(v << 16);
}

typedef struct vector_bf16 { uint16_t lane[2 * VECTOR_LANES]; } vector_bf16;

LANE vector_bf16 vector_bf16_of(vector a, vector b)
{
    vector_bf16 x;

    for (int i = 0; i < VECTOR_LANES; i++) {
        x.lane[i] = lane_to_bf16(a[i]);
        x.lane[i + VECTOR_LANES] = lane_to_bf16(b[i]);
    }
    return x;
}

LANE void vector_store_bf16(uint16_t *m, vector_bf16 x) { memcpy(m, &x, sizeof x); }

LANE void vector_stream(float *to, vector x) { vector_store(to, x); }
#define vector_stream_bf16 vector_store_bf16

#endif
#endif

/* Two bf16 values are the halves of a 32-bit word. */
LANE vector vector_deinterleave_bf16(const uint16_t *m, int second)
{
    vector_bits words = *(const vector_bits_loose *)m;

    return second ? (vector)(words & 0xffff0000u) : (vector)(words << 16);
}

LANE vector vector_abs(vector x) { return (vector)((vector_bits)x & 0x7fffffffu); }
LANE vector vector_neg(vector x) { return (vector)((vector_bits)x ^ 0x80000000u); }
LANE vector vector_min(vector x, vector y) { return vector_select_greater(y, x, x, y); }
LANE vector vector_max(vector x, vector y) { return vector_select_greater(x, y, x, y); }

/* Maximum and minimum of a reduction: NaN propagates. */
LANE vector vector_max_nan(vector a, vector x)
{
    return vector_select_not_equal(x, x, x, vector_select_greater(x, a, x, a));
}

LANE vector vector_min_nan(vector a, vector x)
{
    return vector_select_not_equal(x, x, x, vector_select_greater(a, x, x, a));
}

#endif
