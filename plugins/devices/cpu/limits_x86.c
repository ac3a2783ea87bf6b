/*
 * limits_x86.c - the loops of limits.h for processors with AVX2, AVX-512, AVX512-BF16 and AMX. Each
 * function names the instructions that it is compiled for; a table finds what runs here.
 */
#include "limits.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Independent sums: latency (4) times units (2) at least, and registers for the arguments left.
 * They start from different numbers, or the compiler would keep one for all.
 */
enum { SUMS = 12 };

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void) { return has_avx2() && __builtin_cpu_supports("avx512f"); }
static bool has_avx512_bf16(void) { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

/* The processor has tiles of bf16, and the system lets this process use them. */
static bool has_amx_bf16(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    const unsigned bf16 = 1u << 22, tile = 1u << 24;
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & bf16) != 0 && (d & tile) != 0
        && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* ---- float ----------------------------------------------------------------------------------- */

static void products_sse(int64_t rounds, const void *input, float *output)
{
    const float *from = input;
    __m128 a = _mm_load_ps(from), b = _mm_load_ps(from + 4), sum[SUMS];

#pragma GCC unroll 12
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm_load_ps(from + 4 * i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm_add_ps(_mm_mul_ps(sum[i], b), a);
    }
#pragma GCC unroll 12
    for (int i = 1; i < SUMS; i++)
        sum[0] = _mm_add_ps(sum[0], sum[i]);
    _mm_storeu_ps(output, sum[0]);
}

__attribute__((target("avx2,fma")))
static void products_avx2(int64_t rounds, const void *input, float *output)
{
    const float *from = input;
    __m256 a = _mm256_load_ps(from), b = _mm256_load_ps(from + 8), sum[SUMS];

#pragma GCC unroll 12
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm256_load_ps(from + 8 * i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm256_fmadd_ps(sum[i], b, a);
    }
#pragma GCC unroll 12
    for (int i = 1; i < SUMS; i++)
        sum[0] = _mm256_add_ps(sum[0], sum[i]);
    _mm256_storeu_ps(output, sum[0]);
}

__attribute__((target("avx512f")))
static void products_avx512(int64_t rounds, const void *input, float *output)
{
    const float *from = input;
    __m512 a = _mm512_load_ps(from), b = _mm512_load_ps(from + 16), sum[SUMS];

#pragma GCC unroll 12
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm512_load_ps(from + 16 * i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm512_fmadd_ps(sum[i], b, a);
    }
#pragma GCC unroll 12
    for (int i = 1; i < SUMS; i++)
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    _mm512_storeu_ps(output, sum[0]);
}

const limits_loop limits_f32[] = {
    { has_avx512, products_avx512, 2.0 * 16 * SUMS },
    { has_avx2, products_avx2, 2.0 * 8 * SUMS },
    { NULL, products_sse, 2.0 * 4 * SUMS },
    { 0 }
};

/* ---- bf16 ------------------------------------------------------------------------------------ */

__attribute__((target("avx512f,avx512bf16")))
static void pairs_avx512(int64_t rounds, const void *input, float *output)
{
    const float *from = input;
    __m512bh a = (__m512bh)_mm512_load_ps(from), b = (__m512bh)_mm512_load_ps(from + 16);
    __m512 sum[SUMS];

#pragma GCC unroll 12
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm512_load_ps(from + 16 * i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm512_dpbf16_ps(sum[i], a, b);
    }
#pragma GCC unroll 12
    for (int i = 1; i < SUMS; i++)
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    _mm512_storeu_ps(output, sum[0]);
}

/* Four tiles of sums from two and two tiles of 16 x 32 numbers, as a matrix product uses them. */
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

const limits_loop limits_bf16[] = {
    { has_amx_bf16, tiles_amx, 4 * 2.0 * 16 * 16 * 32 },
    { has_avx512_bf16, pairs_avx512, 2.0 * 32 * SUMS },
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

void limits_copy(void *to, const void *from, size_t size)
{
    if (has_avx512())
        stream_avx512(to, from, size);
    else
        stream_sse(to, from, size);
    _mm_sfence();
}
