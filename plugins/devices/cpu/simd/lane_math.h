/*
 * lane_math.h - the functions of map programs on one element, as straight code without branches.
 *
 * The loops of map_lanes.c are compiled once for each instruction set and turn these functions into
 * vector code, so scalar and vector results come from one source. Accuracy: at most 2 ulp, held by
 * tests/kernels/cpu/check_lane.c. Functions for which float is not enough (pow, sin, cos, tanh,
 * erf) use double inside.
 */
#ifndef PLUGINS_DEVICES_CPU_SIMD_LANE_MATH_H
#define PLUGINS_DEVICES_CPU_SIMD_LANE_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANE static inline __attribute__((always_inline))

/* Contraction is off everywhere else; only these macros fuse a product and a sum. */
#ifdef __FMA__
#define LANE_FMA(a, b, c) __builtin_fmaf(a, b, c)
#define LANE_FMA_WIDE(a, b, c) __builtin_fma(a, b, c)
#else
#define LANE_FMA(a, b, c) ((a) * (b) + (c))
#define LANE_FMA_WIDE(a, b, c) ((a) * (b) + (c))
#endif

LANE uint32_t lane_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

LANE float lane_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

LANE uint64_t lane_bits_wide(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

LANE double lane_from_bits_wide(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* condition ? a : b on the bits, without a branch. */
LANE float lane_select(int condition, float a, float b)
{
    uint32_t mask = 0u - (uint32_t)condition;

    return lane_from_bits((lane_bits(a) & mask) | (lane_bits(b) & ~mask));
}

LANE float lane_abs(float x) { return lane_from_bits(lane_bits(x) & 0x7fffffffu); }

LANE float lane_with_sign(float x, float sign)
{
    return lane_from_bits((lane_bits(x) & 0x7fffffffu) | (lane_bits(sign) & 0x80000000u));
}

/* Round to nearest even. From 2^23 on every float is an integer. */
LANE float lane_round(float x)
{
    float a = lane_abs(x), r = (a + 0x1p23f) - 0x1p23f;

    return a < 0x1p23f ? lane_with_sign(r, x) : x;
}

LANE float lane_floor(float x)
{
    float r = lane_round(x);

    return lane_with_sign(r - (r > x ? 1.0f : 0.0f), x);
}

LANE float lane_sign(float x) { return (x > 0 ? 1.0f : 0.0f) - (x < 0 ? 1.0f : 0.0f); }

LANE float lane_isfinite(float x)
{
    return (lane_bits(x) & 0x7f800000u) != 0x7f800000u ? 1.0f : 0.0f;
}

/* ---- exp and log in float -------------------------------------------------------------------- */

#define LANE_LOG2_E 0x1.715476p+0f
#define LANE_LN2_HIGH 0x1.62e4p-1f     /* its product with any exponent is exact                  */
#define LANE_LN2_LOW 0x1.7f7d1cp-20f
#define LANE_MAGIC 0x1.8p23f           /* adding it leaves the nearest integer in the low bits    */

/* exp(r) - 1 for |r| <= ln 2 / 2. */
LANE float lane_expm1_core(float r)
{
    float p = 0x1.a1258cp-13f;

    p = LANE_FMA(p, r, 0x1.6d43d2p-10f);
    p = LANE_FMA(p, r, 0x1.1110e0p-7f);
    p = LANE_FMA(p, r, 0x1.5554e8p-5f);
    p = LANE_FMA(p, r, 0x1.555556p-3f);
    p = LANE_FMA(p, r, 0.5f);
    return LANE_FMA(p, r * r, r);
}

/* Split x = k ln 2 + r; returns k. */
LANE int32_t lane_exp_split(float x, float *r)
{
    float t = LANE_FMA(x, LANE_LOG2_E, LANE_MAGIC), n = t - LANE_MAGIC;

    *r = LANE_FMA(n, -LANE_LN2_LOW, LANE_FMA(n, -LANE_LN2_HIGH, x));
    return (int32_t)(lane_bits(t) - lane_bits(LANE_MAGIC));
}

LANE float lane_power_of_two(int32_t k) { return lane_from_bits((uint32_t)(k + 127) << 23); }

LANE float lane_exp(float x)
{
    float r, c = x > 89.0f ? 89.0f : x, p;
    int32_t k, half;

    c = c < -105.0f ? -105.0f : c;
    k = lane_exp_split(c, &r);
    half = k >> 1;
    p = 1.0f + lane_expm1_core(r);
    return p * lane_power_of_two(half) * lane_power_of_two(k - half);
}

LANE float lane_expm1(float x)
{
    float r, c = x > 89.0f ? 89.0f : x, p, h, y;
    int32_t k;

    c = c < -20.0f ? -20.0f : c;
    k = lane_exp_split(c, &r);
    p = lane_expm1_core(r);
    h = lane_power_of_two(k - 1);
    y = LANE_FMA(p, h, h - 0.5f) * 2.0f;
    return k == 0 ? p : y;
}

/* log(1 + f) - f for 1 + f from sqrt(1/2) to sqrt(2). */
LANE float lane_log_core(float f)
{
    float s = f * f, p = 0x1.1d7b2ap-4f;

    p = LANE_FMA(p, f, -0x1.d63002p-4f);
    p = LANE_FMA(p, f, 0x1.dea674p-4f);
    p = LANE_FMA(p, f, -0x1.fcf5b6p-4f);
    p = LANE_FMA(p, f, 0x1.23d1f8p-3f);
    p = LANE_FMA(p, f, -0x1.555b44p-3f);
    p = LANE_FMA(p, f, 0x1.999d5cp-3f);
    p = LANE_FMA(p, f, -0x1.fffffcp-3f);
    p = LANE_FMA(p, f, 0x1.555554p-2f);
    return LANE_FMA(-0.5f, s, p * s * f);
}

/* Special cases of log: 0 -> -inf, below 0 -> NaN, inf and NaN stay; else y. */
LANE float lane_log_ends(float x, float y)
{
    y = x == 0 ? -INFINITY : y;
    y = x < 0 ? NAN : y;
    y = x == INFINITY ? x : y;
    return x != x ? x : y;
}

LANE float lane_log(float x)
{
    int tiny = x < 0x1p-126f;
    float scaled = tiny ? x * 0x1p23f : x, e, f;
    uint32_t u = lane_bits(scaled);
    int32_t k = (int32_t)(u - 0x3f3504f3u) >> 23;

    f = lane_from_bits(u - ((uint32_t)k << 23)) - 1.0f;
    e = (float)k - (tiny ? 23.0f : 0.0f);
    return lane_log_ends(x, LANE_FMA(e, LANE_LN2_HIGH,
                                     f + LANE_FMA(e, LANE_LN2_LOW, lane_log_core(f))));
}

LANE float lane_log1p(float x)
{
    int near = x > -0.29f && x < 0.41f;
    float u = 1.0f + x, e, f, c;
    int32_t k = (int32_t)(lane_bits(u) - 0x3f3504f3u) >> 23;

    /* Rounding error of the sum, relative to u. */
    c = (x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x)) / u;
    f = lane_from_bits(lane_bits(u) - ((uint32_t)k << 23)) - 1.0f;
    f = near ? x : f;
    c = near ? 0.0f : c;
    e = near ? 0.0f : (float)k;
    f = LANE_FMA(e, LANE_LN2_HIGH, f + (LANE_FMA(e, LANE_LN2_LOW, c) + lane_log_core(f)));
    return x == 0 ? x : lane_log_ends(u, f);
}

/* ---- functions with a double inside ---------------------------------------------------------- */

#define LANE_MAGIC_WIDE 0x1.8p52

/* 2^t for |t| <= 1000. */
LANE double lane_exp2_wide(double t)
{
    double m = t + LANE_MAGIC_WIDE, r = (t - (m - LANE_MAGIC_WIDE)) * 0x1.62e42fefa39efp-1, p;
    uint64_t scale = (lane_bits_wide(m) << 52) + 0x3ff0000000000000u;

    p = 1.0 / 362880;
    p = LANE_FMA_WIDE(p, r, 1.0 / 40320);
    p = LANE_FMA_WIDE(p, r, 1.0 / 5040);
    p = LANE_FMA_WIDE(p, r, 1.0 / 720);
    p = LANE_FMA_WIDE(p, r, 1.0 / 120);
    p = LANE_FMA_WIDE(p, r, 1.0 / 24);
    p = LANE_FMA_WIDE(p, r, 1.0 / 6);
    p = LANE_FMA_WIDE(p, r, 0.5);
    p = LANE_FMA_WIDE(p, r, 1.0);
    p = LANE_FMA_WIDE(p, r, 1.0);
    return p * lane_from_bits_wide(scale);
}

/* log2 of a positive finite number. */
LANE double lane_log2_wide(double x)
{
    uint64_t u = lane_bits_wide(x) - 0x3fe6a09e667f3bcdu; /* sqrt(1/2)                            */
    uint64_t whole = (u + 0x4000000000000000u) >> 52;     /* exponent + 1024                      */
    double e = lane_from_bits_wide(whole | 0x4330000000000000u) - (0x1p52 + 1024.0);
    double m = lane_from_bits_wide(lane_bits_wide(x) - ((whole - 1024u) << 52));
    double s = (m - 1.0) / (m + 1.0), q = s * s, p = 1.0 / 15;

    p = LANE_FMA_WIDE(p, q, 1.0 / 13);
    p = LANE_FMA_WIDE(p, q, 1.0 / 11);
    p = LANE_FMA_WIDE(p, q, 1.0 / 9);
    p = LANE_FMA_WIDE(p, q, 1.0 / 7);
    p = LANE_FMA_WIDE(p, q, 1.0 / 5);
    p = LANE_FMA_WIDE(p, q, 1.0 / 3);
    p = LANE_FMA_WIDE(p, q, 1.0);
    return LANE_FMA_WIDE(s * p, 2 * 0x1.71547652b82fep+0, e);
}

LANE float lane_pow(float x, float y)
{
    float a = lane_abs(x), whole = lane_floor(y), half = 0.5f * y, r, big;
    int odd = whole == y && lane_floor(half) != half && lane_abs(y) < 0x1p24f;
    double t = lane_log2_wide(a == 0 || a == INFINITY || a != a ? 1.0 : (double)a) * (double)y;

    t = t > 300.0 ? 300.0 : t;
    t = t < -300.0 ? -300.0 : t;
    r = (float)lane_exp2_wide(t);
    /* Special cases: base 0 or infinite, then infinite exponents. */
    r = a == 0 ? (y > 0 ? 0.0f : INFINITY) : r;
    r = a == INFINITY ? (y > 0 ? INFINITY : 0.0f) : r;
    big = (a > 1.0f) == (y > 0) ? INFINITY : 0.0f;
    big = a == 1.0f ? 1.0f : big;
    r = lane_abs(y) == INFINITY ? big : r;
    r = odd && (lane_bits(x) >> 31) ? -r : r;
    r = x < 0 && whole != y && a != INFINITY ? NAN : r;
    r = x != x || y != y ? x + y : r;
    return x == 1.0f || y == 0 ? 1.0f : r;
}

LANE float lane_tanh(float x)
{
    double a = (double)lane_abs(x), c = a > 20.0 ? 20.0 : a;
    double y = 1.0 - 2.0 / (lane_exp2_wide(c * (2 * 0x1.71547652b82fep+0)) + 1.0);

    y = a < 0x1p-10 ? a - a * a * a * (1.0 / 3) : y;
    return x != x ? x : lane_with_sign((float)y, x);
}

/* A polynomial in x up to 1; above, 1 - exp(-a^2) q(1 / a). */
LANE float lane_erf(float x)
{
    double a = (double)lane_abs(x), c = a > 4.0 ? 4.0 : a, q = a * a, t, p, small;

    p = -0x1.445f47d33d87bp-17;
    p = LANE_FMA_WIDE(p, q, 0x1.d887505de3ba6p-14);
    p = LANE_FMA_WIDE(p, q, -0x1.bccf664d7f763p-11);
    p = LANE_FMA_WIDE(p, q, 0x1.562a60ddba6e6p-8);
    p = LANE_FMA_WIDE(p, q, -0x1.b829c897922e5p-6);
    p = LANE_FMA_WIDE(p, q, 0x1.ce2f08fec14fdp-4);
    p = LANE_FMA_WIDE(p, q, -0x1.81274665754c3p-2);
    p = LANE_FMA_WIDE(p, q, 0x1.20dd7504045d6p+0);
    small = p * a;

    c = c < 1.0 ? 1.0 : c;
    t = 1.0 / c;
    p = -0x1.413573feb870ep-6;
    p = LANE_FMA_WIDE(p, t, 0x1.07203bf461843p-3);
    p = LANE_FMA_WIDE(p, t, -0x1.7968769f50836p-2);
    p = LANE_FMA_WIDE(p, t, 0x1.2e0700942b1ddp-1);
    p = LANE_FMA_WIDE(p, t, -0x1.071dc928530a8p-1);
    p = LANE_FMA_WIDE(p, t, 0x1.b716490625c12p-5);
    p = LANE_FMA_WIDE(p, t, 0x1.1d5575d3ae1b5p-1);
    p = LANE_FMA_WIDE(p, t, 0x1.9010cba1639d9p-12);
    p = 1.0 - p * lane_exp2_wide(c * c * -0x1.71547652b82fep+0);
    p = a < 1.0 ? small : p;
    return x != x ? x : lane_with_sign((float)p, x);
}

/*
 * Largest angle for which the reduction below is exact enough. The loops send larger arguments to
 * libm.
 */
#define LANE_ANGLE_MAX 0x1p20f

/* Split x = n pi/2 + r; returns n modulo 4. */
LANE uint64_t lane_angle(float x, double *r)
{
    double d = (double)x, m = d * 0x1.45f306dc9c883p-1 + LANE_MAGIC_WIDE, n = m - LANE_MAGIC_WIDE;

    *r = (d - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34;
    return lane_bits_wide(m) & 3u;
}

LANE double lane_sin_core(double r)
{
    double q = r * r, p = 1.0 / 6227020800.0;

    p = LANE_FMA_WIDE(p, q, -1.0 / 39916800);
    p = LANE_FMA_WIDE(p, q, 1.0 / 362880);
    p = LANE_FMA_WIDE(p, q, -1.0 / 5040);
    p = LANE_FMA_WIDE(p, q, 1.0 / 120);
    p = LANE_FMA_WIDE(p, q, -1.0 / 6);
    return LANE_FMA_WIDE(p * q, r, r);
}

LANE double lane_cos_core(double r)
{
    double q = r * r, p = 1.0 / 479001600;

    p = LANE_FMA_WIDE(p, q, -1.0 / 3628800);
    p = LANE_FMA_WIDE(p, q, 1.0 / 40320);
    p = LANE_FMA_WIDE(p, q, -1.0 / 720);
    p = LANE_FMA_WIDE(p, q, 1.0 / 24);
    p = LANE_FMA_WIDE(p, q, -0.5);
    return LANE_FMA_WIDE(p, q, 1.0);
}

/* sin(x + quarter pi/2): quarter 0 is sin, 1 is cos. */
LANE float lane_sin_quarter(float x, uint64_t quarter)
{
    double r, s, c;
    uint64_t n = lane_angle(x, &r) + quarter;

    s = lane_sin_core(r);
    c = lane_cos_core(r);
    s = (n & 1u) != 0 ? c : s;
    return (float)lane_from_bits_wide(lane_bits_wide(s) ^ ((n & 2u) << 62));
}

LANE float lane_sin(float x) { return x == 0 ? x : lane_sin_quarter(x, 0); }
LANE float lane_cos(float x) { return lane_sin_quarter(x, 1); }

/* ---- types in memory ------------------------------------------------------------------------- */

LANE float lane_from_bf16(uint16_t h) { return lane_from_bits((uint32_t)h << 16); }

LANE uint16_t lane_to_bf16(float x)
{
    uint32_t u = lane_bits(x), even = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;

    return (uint16_t)(x != x ? (u >> 16) | 0x40u : even);
}

/* Subnormal f16 values are right because the product with a power of two is exact. */
LANE float lane_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t finite = lane_bits(lane_from_bits(rest) * 0x1p112f);

    return lane_from_bits((rest >= 0x0f800000u ? rest | 0x7f800000u : finite) | sign);
}

LANE uint16_t lane_to_f16(float x)
{
    uint32_t u = lane_bits(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    uint32_t normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    /* The sum leaves the subnormal f16, rounded to nearest even, in the low bits. */
    uint32_t small = lane_bits(lane_from_bits(a) + 0.5f) - 0x3f000000u;
    uint32_t half = a < 0x38800000u ? small : normal;

    half = a >= 0x477ff000u ? 0x7c00u : half;
    half = a > 0x7f800000u ? 0x7e00u : half;
    return (uint16_t)(half | sign);
}

/* Truncate towards zero and clamp to the type's range; NaN becomes 0. */
LANE uint8_t lane_to_u8(float x)
{
    float c = x > 0 ? x : 0.0f;

    return (uint8_t)(int32_t)(c > 255.0f ? 255.0f : c);
}

LANE int32_t lane_to_i32(float x)
{
    float c = x == x ? x : 0.0f;

    c = c < -0x1p31f ? -0x1p31f : c;
    return c >= 0x1p31f ? INT32_MAX : (int32_t)(c > 0x1.fffffep30f ? 0x1.fffffep30f : c);
}

#endif
