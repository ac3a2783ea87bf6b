/*
 * peak_x86.c - the loops of peak.h for processors with AVX2, AVX-512, AVX512-BF16 and AMX. Each
 * function has a target attribute for its instructions; the tables order the loops.
 */
#include "cpu/peak.h"

#include <immintrin.h>

/*
 * Independent sums: at least latency (4) times units (2), with registers left for the operands.
 * Their start values differ; otherwise the compiler would merge them into one sum.
 */
enum { SUMS = 12 };

/* A loop of multiply-adds on vectors: 'next' is the new value of sum[i], with operands a and b. */
#define LOOP(name, needs, vector, prefix, next)                                                \
    needs static void name(int64_t rounds, const void *input, float *output)                   \
    {                                                                                          \
        enum { LANES = sizeof(vector) / sizeof(float) };                                       \
        const float *from = input;                                                             \
        vector a = prefix##_load_ps(from), b = prefix##_load_ps(from + LANES), sum[SUMS];      \
                                                                                               \
        _Pragma("GCC unroll 12")                                                               \
        for (int i = 0; i < SUMS; i++)                                                         \
            sum[i] = prefix##_load_ps(from + LANES * i);                                       \
        for (int64_t r = 0; r < rounds; r++) {                                                 \
            _Pragma("GCC unroll 12")                                                           \
            for (int i = 0; i < SUMS; i++)                                                     \
                sum[i] = next;                                                                 \
        }                                                                                      \
        _Pragma("GCC unroll 12")                                                               \
        for (int i = 1; i < SUMS; i++)                                                         \
            sum[0] = prefix##_add_ps(sum[0], sum[i]);                                          \
        prefix##_storeu_ps(output, sum[0]);                                                    \
    }

/* ---- float ----------------------------------------------------------------------------------- */

LOOP(products_sse, , __m128, _mm, _mm_add_ps(_mm_mul_ps(sum[i], b), a))
LOOP(products_avx2, __attribute__((target("avx2,fma"))), __m256, _mm256,
     _mm256_fmadd_ps(sum[i], b, a))
LOOP(products_avx512, __attribute__((target("avx512f"))), __m512, _mm512,
     _mm512_fmadd_ps(sum[i], b, a))

const peak_loop peak_f32[] = {
    { ISA_AVX512, products_avx512, 2.0 * 16 * SUMS },
    { ISA_AVX2, products_avx2, 2.0 * 8 * SUMS },
    { ISA_BASELINE, products_sse, 2.0 * 4 * SUMS },
    { 0 }
};

/* ---- bf16 ------------------------------------------------------------------------------------ */

LOOP(pairs_avx512, __attribute__((target("avx512f,avx512bf16"))), __m512, _mm512,
     _mm512_dpbf16_ps(sum[i], (__m512bh)a, (__m512bh)b))

/* Four tiles of sums from two and two tiles of 16 x 32 elements, as in a matrix product. */
__attribute__((target("amx-tile,amx-bf16")))
static void tiles_amx(int64_t rounds, const void *input, float *output)
{
    struct __attribute__((packed, aligned(64))) {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = { .palette = 1 };
    float sum[16][16];

    for (int i = 0; i < 8; i++) {
        shape.row_bytes[i] = 64;
        shape.rows[i] = 16;
    }
    _tile_loadconfig(&shape);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, input, 64);
    _tile_loadd(5, input, 64);
    _tile_loadd(6, input, 64);
    _tile_loadd(7, input, 64);
    for (int64_t r = 0; r < rounds; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(3, sum, 64);
    _tile_release();
    *output = sum[15][15];
}

const peak_loop peak_bf16[] = {
    { ISA_AMX, tiles_amx, 4 * 2.0 * 16 * 16 * 32 },
    { ISA_AVX512BF16, pairs_avx512, 2.0 * 32 * SUMS },
    { 0 }
};

/* ---- copy ------------------------------------------------------------------------------------ */

__attribute__((target("avx512f")))
static void stream_avx512(char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i += 64)
        _mm512_stream_ps((float *)(to + i), _mm512_load_ps(from + i));
}

static void stream_sse(char *to, const char *from, size_t size)
{
    for (size_t i = 0; i < size; i += 16)
        _mm_stream_ps((float *)(to + i), _mm_load_ps((const float *)(from + i)));
}

void peak_copy(void *to, const void *from, size_t size)
{
    if (isa_runs(ISA_AVX512))
        stream_avx512(to, from, size);
    else
        stream_sse(to, from, size);
    _mm_sfence();
}
