/*
 * interpreter_random.c - random values of the graph (R5), sixteen groups of four elements at a
 * time.
 *
 * core/base/random.c has the definition. This file repeats it element by element, in loops that the
 * compiler vectorises. tests/kernels/cpu/check_map.c holds the two equal, bit by bit.
 */
#include "cpu/simd/lane_math.h"
#include "cpu/map/map_lanes.h"

#include "base/integer.h"

#define QUADS 16

/* Philox4x32-10 of QUADS consecutive counters. */
static void philox_quads(uint64_t key, uint64_t quad, const pons_step_key *step_key,
                         uint32_t out[4][QUADS])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int i = 0; i < QUADS; i++) {
        out[0][i] = (uint32_t)(quad + (unsigned)i);
        out[1][i] = (uint32_t)((quad + (unsigned)i) >> 32);
        out[2][i] = (uint32_t)step_key->micro_batch;
        out[3][i] = (uint32_t)step_key->step;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < QUADS; i++) {
            uint64_t a = (uint64_t)0xd2511f53u * out[0][i];
            uint64_t b = (uint64_t)0xcd9e8d57u * out[2][i];
            uint32_t c1 = out[1][i], c3 = out[3][i];
            out[0][i] = (uint32_t)(b >> 32) ^ c1 ^ k0;
            out[1][i] = (uint32_t)b;
            out[2][i] = (uint32_t)(a >> 32) ^ c3 ^ k1;
            out[3][i] = (uint32_t)a;
        }
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
}

LANE float uniform_of(uint32_t u) { return (float)(int32_t)(u >> 8) * 0x1p-24f; }

/* Natural logarithm of a normal float in (0, 1], with the bits of core's random_normal. */
LANE float log_of(float x)
{
    uint32_t u = lane_bits(x);
    int small;
    float e = (float)((int32_t)(u >> 23) - 126), m, p, z, y;

    m = lane_from_bits((u & 0x007fffffu) | 0x3f000000u);
    small = m < 0.70710678f;
    e = small ? e - 1.0f : e;
    m = (small ? m + m : m) - 1.0f;
    z = m * m;
    p = 7.0376836292e-2f;
    p = __builtin_fmaf(p, m, -1.1514610310e-1f);
    p = __builtin_fmaf(p, m, 1.1676998740e-1f);
    p = __builtin_fmaf(p, m, -1.2420140846e-1f);
    p = __builtin_fmaf(p, m, 1.4249322787e-1f);
    p = __builtin_fmaf(p, m, -1.6668057665e-1f);
    p = __builtin_fmaf(p, m, 2.0000714765e-1f);
    p = __builtin_fmaf(p, m, -2.4999993993e-1f);
    p = __builtin_fmaf(p, m, 3.3333331174e-1f);
    y = p * m * z;
    y = __builtin_fmaf(e, -2.12194440e-4f, y);
    y = __builtin_fmaf(-0.5f, z, y);
    return __builtin_fmaf(e, 0.693359375f, m + y);
}

/* cos and sin of 2 pi t for t in [0, 1), with the bits of core's random_normal. */
LANE void sin_cos(float t, float *c, float *s)
{
    int32_t quarter = (int32_t)(t * 4.0f + 0.5f);
    float x = (t - (float)quarter * 0.25f) * 6.28318530718f, z = x * x;
    float sine = __builtin_fmaf(x * z, __builtin_fmaf(z, __builtin_fmaf(z, -1.9515295891e-4f,
                                8.3321608736e-3f), -1.6666654611e-1f), x);
    float cosine = __builtin_fmaf(z * z, __builtin_fmaf(z, __builtin_fmaf(z,
                                  2.443315711809948e-5f, -1.388731625493765e-3f),
                                  4.166664568298827e-2f), __builtin_fmaf(z, -0.5f, 1.0f));
    uint32_t odd = (uint32_t)quarter & 1u, half = ((uint32_t)quarter & 2u) << 30;
    uint32_t cosine_sign = half ^ (odd << 31);

    *c = lane_from_bits(lane_bits(lane_select((int)odd, sine, cosine)) ^ cosine_sign);
    *s = lane_from_bits(lane_bits(lane_select((int)odd, cosine, sine)) ^ half);
}

static void uniform_quads(uint32_t u[4][QUADS], float *to)
{
    for (int i = 0; i < QUADS; i++)
        for (int j = 0; j < 4; j++)
            to[4 * i + j] = uniform_of(u[j][i]);
}

static void normal_quads(uint32_t u[4][QUADS], float *to)
{
    float part[4][QUADS];

    for (int j = 0; j < 4; j += 2)
        for (int i = 0; i < QUADS; i++) {
            float radius = __builtin_sqrtf(-2.0f * log_of((float)(int32_t)((u[j][i] >> 8) + 1)
                                                          * 0x1p-24f));
            float c, s;
            sin_cos(uniform_of(u[j + 1][i]), &c, &s);
            part[j][i] = radius * c;
            part[j + 1][i] = radius * s;
        }
    for (int i = 0; i < QUADS; i++)
        for (int j = 0; j < 4; j++)
            to[4 * i + j] = part[j][i];
}

LANE void random_run(float *to, int64_t first, int n, uint64_t stream,
                     const pons_step_key *step_key,
                     void (*convert)(uint32_t u[4][QUADS], float *to))
{
    uint32_t u[4][QUADS];
    float block[4 * QUADS];
    int skip = (int)(first & 3), done = 0;

    for (uint64_t quad = (uint64_t)first >> 2; done < n; quad += QUADS, skip = 0) {
        int part = min_int(4 * QUADS - skip, n - done);
        philox_quads(step_key->seed ^ stream, quad, step_key, u);
        convert(u, block);
        memcpy(to + done, block + skip, (size_t)part * sizeof *to);
        done += part;
    }
}

void CPU_ISA_NAME(map_uniform)(float *to, int64_t first, int n, uint64_t stream,
                               const pons_step_key *step_key)
{
    random_run(to, first, n, stream, step_key, uniform_quads);
}

void CPU_ISA_NAME(map_normal)(float *to, int64_t first, int n, uint64_t stream,
                              const pons_step_key *step_key)
{
    random_run(to, first, n, stream, step_key, normal_quads);
}
