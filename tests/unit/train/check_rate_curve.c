/*
 * check_rate_curve.c - smoothed losses and suggested rates of a sweep, against those of fastai.
 */
#include "base/file/file.h"
#include "base/file/json.h"
#include "bench/rate_curve.h"

#include "support/run/run_json.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <string.h>

static rate_curve curve;

static double number_of(const json_t *c, const char *list, int i)
{
    return json_number_value(json_array_get(json_at(c, list), (size_t)i));
}

static void expect_near(double found, double expected)
{
    ck_assert_msg(fabs(found - expected) <= RATE_OF_BASE * fabs(expected), "%.9g, expected %.9g",
                  found, expected);
}

static void check_sweep(const json_t *c)
{
    const rate_sweep sweep = { json_number_value(json_at(c, "start")),
                               json_number_value(json_at(c, "end")),
                               (int)json_number_value(json_at(c, "steps")) };
    const json_t *picks = json_at(c, "suggestion");
    int last = (int)json_number_value(json_at(c, "last_step"));

    memset(&curve, 0, sizeof curve);
    for (int i = 0; i <= last; i++) {
        double rate = rate_sweep_at(&sweep, i);
        expect_near(rate, number_of(c, "rates", i));
        ck_assert_int_eq(rate_curve_add(&curve, rate, number_of(c, "losses", i)), i < last);
        expect_near(curve.smooth[i], number_of(c, "smooth", i));
    }
    rate_span span = rate_curve_span(&curve, sweep.steps);
    rate_suggestion s = rate_curve_suggest(&span);
    expect_near(s.valley, json_number_value(json_at(picks, "valley")));
    expect_near(s.steep, json_number_value(json_at(picks, "steep")));
    expect_near(s.minimum, json_number_value(json_at(picks, "minimum")));
}

START_TEST(sweeps_end_and_suggest_as_those_of_fastai)
{
    json_t *d = golden_json("schedules_more.json");
    const json_t *c;
    size_t i;
    int cases = 0;

    json_array_foreach(d, i, c) {
        if (strcmp(json_string_value(json_at(c, "schedule")), "lr_find") != 0)
            continue;
        check_sweep(c);
        cases++;
    }
    ck_assert_int_eq(cases, 2);
    json_decref(d);
}
END_TEST

/* The loss of nnU-Net falls below 0, where four times the smallest is smaller still. */
START_TEST(a_negative_loss_is_no_divergence)
{
    memset(&curve, 0, sizeof curve);
    for (int i = 0; i < 100; i++)
        ck_assert(rate_curve_add(&curve, i + 1, -0.5 - 0.001 * i));
    ck_assert_int_eq(curve.count, 100);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_ends_a_sweep_and_is_left_out)
{
    memset(&curve, 0, sizeof curve);
    for (int i = 0; i < 12; i++)
        ck_assert(rate_curve_add(&curve, i + 1, 1));
    ck_assert(!rate_curve_add(&curve, 20, INFINITY));
    ck_assert(!rate_curve_add(&curve, 20, NAN));
    ck_assert_int_eq(curve.count, 12);
    rate_span span = rate_curve_span(&curve, 100);
    ck_assert(isnan(rate_curve_suggest(&span).valley));
}
END_TEST

int main(void)
{
    TCase *c = suite_new("rate curve");

    tcase_add_test(c, sweeps_end_and_suggest_as_those_of_fastai);
    tcase_add_test(c, a_negative_loss_is_no_divergence);
    tcase_add_test(c, a_loss_that_is_not_finite_ends_a_sweep_and_is_left_out);
    return suite_run();
}
