/*
 * check_lane.c - accuracy of the vector functions against libm in double.
 */
#include "support/suite.h"

#include "cpu/cpu.h"
#include "cpu/simd/lane_math.h"

#define COUNT 4096

typedef struct function {
    const char *name;
    int operation;
    double (*truth)(double x);
    double ulps;
} function;

static const function functions[] = {
    { "exp", PONS_MAP_EXP, exp, 2 }, { "expm1", PONS_MAP_EXPM1, expm1, 2 },
    { "log", PONS_MAP_LOG, log, 2 }, { "log1p", PONS_MAP_LOG1P, log1p, 2 },
    { "sin", PONS_MAP_SIN, sin, 2 }, { "cos", PONS_MAP_COS, cos, 2 },
    { "tanh", PONS_MAP_TANH, tanh, 2 }, { "erf", PONS_MAP_ERF, erf, 2 },
    { "sqrt", PONS_MAP_SQRT, sqrt, 0.5 }, { "floor", PONS_MAP_FLOOR, floor, 0 },
    { "round", PONS_MAP_ROUND, rint, 0 },
};

/* Distance from the float nearest to 'truth', in units in the last place. */
static double distance_in_ulp(float x, double truth)
{
    float near = (float)truth;
    double ulp;

    if (truth != truth || x != x)
        return (truth != truth) == (x != x) ? 0 : INFINITY;
    if (isinf(near) || isinf(x))
        return near == x ? 0 : fabs(truth) > (double)FLT_MAX * 0.9999999 ? 0 : INFINITY;
    ulp = fabs(near) < FLT_MIN ? 0x1p-149 : ldexp(1, ilogb((double)near) - 23);
    return fabs((double)x - truth) / ulp;
}

static void check_block(const function *f, const map_lanes *lanes, const float *x, double *worst,
                        float *where)
{
    static float y[COUNT];

    lanes->operation[f->operation][0](y, x, x, x, COUNT);
    for (int i = 0; i < COUNT; i++) {
        double d = distance_in_ulp(y[i], f->truth((double)x[i]));
        if (d > *worst) {
            *worst = d;
            *where = x[i];
        }
    }
}

/* Every 'step'-th of all 2^32 floats. */
static void check_function(const function *f, const map_lanes *lanes, uint32_t step)
{
    static float x[COUNT];
    uint64_t bits = 0;
    double worst = 0;
    float where = 0;

    while (bits < UINT64_C(1) << 32) {
        for (int i = 0; i < COUNT; i++, bits += step)
            x[i] = lane_from_bits((uint32_t)bits);
        check_block(f, lanes, x, &worst, &where);
    }
    if (getenv("PONS_TEST_PRINT"))
        fprintf(stderr, "%-9s %-6s %.3f ulp at %a\n", lanes->name, f->name, worst, (double)where);
    ck_assert_msg(worst <= f->ulps, "%s of %s: %.3f ulp at %.9g (%a)", f->name, lanes->name, worst,
                  (double)where, (double)where);
}

START_TEST(unary_functions_are_accurate_to_two_ulp)
{
    for (int row = 0; row < isa_rows_count(); row++)
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            check_function(&functions[i], isa_map_lanes(row),
                           getenv("PONS_TEST_ALL") ? 1 : 4093);
}
END_TEST

/* Around 1 and 0 every float is tested. */
START_TEST(functions_are_accurate_near_their_zeros)
{
    static float x[COUNT];

    for (int row = 0; row < isa_rows_count(); row++)
        for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
            for (int k = -20; k < 20; k++) {
                double worst = 0;
                float where = 0;
                for (int i = 0; i < COUNT; i++)
                    x[i] = (k & 1 ? 1.0f : -1.0f) * ldexpf(1.0f + (float)i / COUNT, k / 2)
                         * (f == 2 ? (k & 1 ? 1.0f : -1.0f) : 1.0f);
                check_block(&functions[f], isa_map_lanes(row), x, &worst, &where);
                ck_assert_msg(worst <= functions[f].ulps, "%s of %s: %.3f ulp at %a",
                              functions[f].name, isa_map_lanes(row)->name, worst, (double)where);
            }
}
END_TEST

START_TEST(powers_are_accurate_to_two_ulp_with_the_special_cases_of_libm)
{
    static const float ends[] = { 0, -0.0f, 1, -1, 2, -2, 3, -3, 0.5f, -0.5f, 1.5f, -1.5f, INFINITY,
                                  -INFINITY, NAN, 1e-40f, 1e30f, -1e30f, 16777216.0f, 16777217.0f };
    static float x[COUNT], y[COUNT], z[COUNT];
    int n = (int)(sizeof ends / sizeof *ends);

    for (int row = 0; row < isa_rows_count(); row++)
        for (int round = 0; round < 60; round++) {
            for (int i = 0; i < COUNT; i++) {
                uint32_t u = ((uint32_t)i + 4096u * (uint32_t)round) * 2654435761u;
                x[i] = ldexpf(1.0f + (float)(u >> 16) * 0x1p-16f, (int)(u & 31) - 16);
                y[i] = (float)((int)(u >> 3 & 0xffff) - 32768) * 0x1p-12f;
                if (round == 0 && i < n * n) {
                    x[i] = ends[i / n];
                    y[i] = ends[i % n];
                }
            }
            isa_map_lanes(row)->operation[PONS_MAP_POW][0](z, x, y, y, COUNT);
            for (int i = 0; i < COUNT; i++) {
                double truth = pow((double)x[i], (double)y[i]);
                ck_assert_msg(distance_in_ulp(z[i], truth) <= 2
                              && (truth != truth || !signbit(z[i]) == !signbit(truth)),
                              "pow(%g, %g) of %s is %.9g, should be %.9g", (double)x[i],
                              (double)y[i], isa_map_lanes(row)->name, (double)z[i], truth);
            }
        }
}
END_TEST

START_TEST(bf16_and_f16_convert_both_ways)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float b = lane_from_bf16((uint16_t)h), f = lane_from_f16((uint16_t)h);
        int e = h >> 10 & 31;
        double size = e == 0 ? ldexp(h & 1023, -24) : ldexp(1024 + (h & 1023), e - 25);

        if (b == b)
            ck_assert_uint_eq(lane_to_bf16(b), h);
        if (e == 31) {
            ck_assert((h & 1023) ? f != f : isinf(f));
            continue;
        }
        ck_assert(fabs((double)f) == size && !signbit(f) == !(h >> 15));
        ck_assert_uint_eq(lane_to_f16(f), h);
        /* A value half way between two numbers rounds to the even one. */
        if (e < 30) {
            float next = lane_from_f16((uint16_t)(h + 1));
            ck_assert_uint_eq(lane_to_f16((f + next) / 2), (h & 1) ? h + 1 : h);
        }
    }
    ck_assert_uint_eq(lane_to_f16(65519.0f), 0x7bff);
    ck_assert_uint_eq(lane_to_f16(65520.0f), 0x7c00);
    ck_assert_uint_eq(lane_to_bf16(lane_from_bits(0x3f808000u)), 0x3f80);
    ck_assert_uint_eq(lane_to_bf16(lane_from_bits(0x3f818000u)), 0x3f82);
}
END_TEST

START_TEST(integers_are_truncated_and_clamped)
{
    ck_assert_int_eq(lane_to_u8(2.9f), 2);
    ck_assert_int_eq(lane_to_u8(-3.0f), 0);
    ck_assert_int_eq(lane_to_u8(300.0f), 255);
    ck_assert_int_eq(lane_to_u8(NAN), 0);
    ck_assert_int_eq(lane_to_i32(-2.9f), -2);
    ck_assert_int_eq(lane_to_i32(1e20f), INT32_MAX);
    ck_assert_int_eq(lane_to_i32(-1e20f), INT32_MIN);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("lane");

    tcase_add_test(c, unary_functions_are_accurate_to_two_ulp);
    tcase_add_test(c, functions_are_accurate_near_their_zeros);
    tcase_add_test(c, powers_are_accurate_to_two_ulp_with_the_special_cases_of_libm);
    tcase_add_test(c, bf16_and_f16_convert_both_ways);
    tcase_add_test(c, integers_are_truncated_and_clamped);
    return suite_run();
}
