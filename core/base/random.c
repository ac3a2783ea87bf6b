/*
 * random.c - Philox4x32-10, and the packing of names, steps and elements into its counter.
 */
#include "base/random.h"

#include <math.h>
#include <string.h>

uint64_t stream_hash(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *name != '\0'; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)UINT32_C(0xd2511f53) * c0;
        uint64_t b = (uint64_t)UINT32_C(0xcd9e8d57) * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += UINT32_C(0x9e3779b9);
        k1 += UINT32_C(0xbb67ae85);
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static void draw_at(uint64_t key, uint64_t quad, uint64_t place, uint64_t time, uint32_t out[4])
{
    const uint32_t counter[4] = { (uint32_t)quad, (uint32_t)(quad >> 32), (uint32_t)place,
                                  (uint32_t)time };
    const uint32_t words[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
    philox(counter, words, out);
}

void random_graph(uint64_t seed, uint64_t stream, uint64_t step, uint64_t micro_batch, uint64_t quad,
                  uint32_t out[4])
{
    draw_at(seed ^ stream, quad, micro_batch, step, out);
}

void random_data(uint64_t seed, uint64_t stream, uint64_t epoch, uint64_t case_rank, uint64_t sample,
                 uint64_t draw, uint32_t out[4])
{
    draw_at(seed ^ stream, sample * 4096 + draw, case_rank, epoch, out);
}

void random_voxels(uint64_t key, uint64_t quad, uint32_t out[4])
{
    draw_at(key, quad, 0, 0, out);
}

/* Natural logarithm of a normal float in (0, 1]; the polynomial of Cephes' logf. */
static float log_of(float x)
{
    static const float c[] = { 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f,
                               -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                               2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f };
    uint32_t bits;
    int exponent;
    float m, p, y, z;

    memcpy(&bits, &x, sizeof bits);
    exponent = (int)(bits >> 23) - 126;
    bits = (bits & UINT32_C(0x007fffff)) | UINT32_C(0x3f000000);
    memcpy(&m, &bits, sizeof m); /* [0.5, 1) */
    if (m < 0.70710678f) {
        exponent--;
        m += m;
    }
    m -= 1.0f;
    z = m * m;
    p = c[0];
    for (int i = 1; i < 9; i++)
        p = fmaf(p, m, c[i]);
    y = p * m * z;
    y = fmaf((float)exponent, -2.12194440e-4f, y);
    y = fmaf(-0.5f, z, y);
    return fmaf((float)exponent, 0.693359375f, m + y);
}

/* cos and sin of 2 pi t for t in [0, 1): the nearest quarter turn is taken off exactly. */
static void turn(float t, float *c, float *s)
{
    int quarter = (int)(t * 4.0f + 0.5f);
    float x = (t - (float)quarter * 0.25f) * 6.28318530718f, z = x * x;
    float sine = fmaf(x * z, fmaf(z, fmaf(z, -1.9515295891e-4f, 8.3321608736e-3f),
                                  -1.6666654611e-1f), x);
    float cosine = fmaf(z * z, fmaf(z, fmaf(z, 2.443315711809948e-5f, -1.388731625493765e-3f),
                                    4.166664568298827e-2f), fmaf(z, -0.5f, 1.0f));

    switch (quarter & 3) {
    case 0: *c = cosine; *s = sine; break;
    case 1: *c = -sine; *s = cosine; break;
    case 2: *c = -cosine; *s = -sine; break;
    default: *c = sine; *s = -cosine; break;
    }
}

void random_normal(uint32_t u, uint32_t v, float out[2])
{
    float radius = sqrtf(-2.0f * log_of((float)((u >> 8) + 1) * 0x1p-24f));
    float c, s;

    turn(random_uniform(v), &c, &s);
    out[0] = radius * c;
    out[1] = radius * s;
}
