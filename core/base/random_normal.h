/*
 * random_normal.h - the arithmetic of random_normal without a branch, so that a loop over many
 * pairs vectorises. random.c and voxel_normals.c use it and produce the same bits.
 */
#ifndef CORE_BASE_RANDOM_NORMAL_H
#define CORE_BASE_RANDOM_NORMAL_H

#include "base/avx2_clone.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

/* Natural logarithm of a positive normal float; the polynomial of Cephes' logf. */
AVX2_BODY float random_log(float x)
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
    exponent -= m < 0.70710678f;
    m = (m < 0.70710678f ? m + m : m) - 1.0f;
    z = m * m;
    p = c[0];
    AVX2_UNROLL for (int i = 1; i < 9; i++)
        p = fmaf(p, m, c[i]);
    y = p * m * z;
    y = fmaf((float)exponent, -2.12194440e-4f, y);
    y = fmaf(-0.5f, z, y);
    return fmaf((float)exponent, 0.693359375f, m + y);
}

/* cos and sin of 2 pi t for t in [0, 1). The nearest quarter turn is subtracted exactly. */
AVX2_BODY void random_turn(float t, float *c, float *s)
{
    int quarter = (int)(t * 4.0f + 0.5f) & 3;
    float whole = (float)(int)(t * 4.0f + 0.5f);
    float x = (t - whole * 0.25f) * 6.28318530718f, z = x * x;
    float sine = fmaf(x * z, fmaf(z, fmaf(z, -1.9515295891e-4f, 8.3321608736e-3f),
                                  -1.6666654611e-1f), x);
    float cosine = fmaf(z * z, fmaf(z, fmaf(z, 2.443315711809948e-5f, -1.388731625493765e-3f),
                                    4.166664568298827e-2f), fmaf(z, -0.5f, 1.0f));
    float first = quarter & 1 ? sine : cosine, second = quarter & 1 ? cosine : sine;

    *c = (quarter + 1) & 2 ? -first : first;
    *s = quarter & 2 ? -second : second;
}

AVX2_BODY void random_pair(uint32_t u, uint32_t v, float *first, float *second)
{
    float radius = sqrtf(-2.0f * random_log((float)((u >> 8) + 1) * 0x1p-24f));
    float c, s;

    random_turn((float)(v >> 8) * 0x1p-24f, &c, &s);
    *first = radius * c;
    *second = radius * s;
}

#endif
