/*
 * check_integer.c - minima, maxima and rounded quotients up to the limits of their types.
 */
#include "support/suite.h"

#include <limits.h>

#include "base/integer.h"

START_TEST(minimum_and_maximum_of_two_integers)
{
    ck_assert_int_eq(min_int(INT_MIN, INT_MAX), INT_MIN);
    ck_assert_int_eq(max_int(INT_MIN, INT_MAX), INT_MAX);
    ck_assert_int_eq(min_int(-1, -1), -1);
    ck_assert_int_eq(max_int(0, -1), 0);
    ck_assert_int_eq(min_i64(INT64_MIN, INT64_MAX), INT64_MIN);
    ck_assert_int_eq(max_i64(INT64_MIN, INT64_MAX), INT64_MAX);
    ck_assert_int_eq(min_i64(INT64_C(1) << 32, 1), 1); /* the low half is 0 */
    ck_assert_int_eq(max_i64(INT64_C(1) << 32, 1), INT64_C(1) << 32);
}
END_TEST

/* The definitions of the rounded quotients hold for small dividends of either sign. */
START_TEST(rounded_quotients_bound_the_exact_one)
{
    for (int by = 1; by <= 9; by++) {
        for (int a = -50; a <= 50; a++) {
            int down = floor_div_int(a, by), up;
            ck_assert(down * by <= a && a < (down + 1) * by);
            if (a <= -by)
                continue;
            up = ceil_div_int(a, by);
            ck_assert((up - 1) * by < a && a <= up * by);
            ck_assert_int_eq(ceil_div_i64(a, by), up);
            ck_assert_int_eq(round_up_int(a, by), up * by);
            ck_assert_int_eq(round_up_i64(a, by), up * by);
            if (a < 0)
                continue;
            ck_assert_uint_eq(round_up_u64((uint64_t)a, (uint64_t)by), (uint64_t)(up * by));
            ck_assert_uint_eq(round_up_size((size_t)a, (size_t)by), (size_t)(up * by));
        }
    }
}
END_TEST

START_TEST(rounded_quotients_are_right_up_to_the_type_limits)
{
    ck_assert_int_eq(ceil_div_int(INT_MAX - 63, 64), INT_MAX / 64);
    ck_assert_int_eq(ceil_div_int(INT_MAX, 1), INT_MAX);
    ck_assert_int_eq(floor_div_int(INT_MAX, 64), INT_MAX / 64);
    ck_assert_int_eq(floor_div_int(INT_MIN + 64, 64), INT_MIN / 64 + 1);
    ck_assert_int_eq(round_up_int(INT_MAX - 63, 64), INT_MAX - 63);
    ck_assert_int_eq(round_up_int(INT_MAX, 1), INT_MAX);
    ck_assert_int_eq(ceil_div_i64(INT64_MAX, 1), INT64_MAX);
    ck_assert_int_eq(ceil_div_i64(INT64_MAX - 63, 64), INT64_MAX / 64);
    ck_assert_int_eq(round_up_i64(INT64_MAX - 63, 64), INT64_MAX - 63);
    ck_assert_uint_eq(round_up_u64(UINT64_MAX - 4095, 4096), UINT64_MAX - 4095);
    ck_assert_uint_eq(round_up_size(SIZE_MAX - 255, 256), SIZE_MAX - 255);
    ck_assert_uint_eq(round_up_size(SIZE_MAX, 1), SIZE_MAX);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("integer");
    tcase_add_test(c, minimum_and_maximum_of_two_integers);
    tcase_add_test(c, rounded_quotients_bound_the_exact_one);
    tcase_add_test(c, rounded_quotients_are_right_up_to_the_type_limits);
    return suite_run();
}
