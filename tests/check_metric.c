/*
 * check_metric.c - Dice and IoU: MONAI's numbers on golden label pairs, properties, empty classes.
 */
#include <config.h>

#include "train/metric.h"

#include <check.h>
#include <math.h>
#include <string.h>

START_TEST(mask_with_itself_is_one)
{
    uint8_t a[100];
    metric_count c[3];

    for (int i = 0; i < 100; i++)
        a[i] = (uint8_t)(i % 3);
    metric_count_labels(a, a, 100, 3, c);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(metric_dice(c[i]), 1);
        ck_assert_double_eq(metric_iou(c[i]), 1);
    }
}
END_TEST

START_TEST(half_overlap_gives_known_values)
{
    const uint8_t prediction[] = { 1, 1, 0, 0 }, label[] = { 0, 1, 1, 0 };
    metric_count c[2];

    metric_count_labels(prediction, label, 4, 2, c);
    ck_assert_double_eq(metric_dice(c[1]), 0.5);
    ck_assert_double_eq_tol(metric_iou(c[1]), 1.0 / 3, 1e-15);
}
END_TEST

START_TEST(dice_and_iou_are_tied_by_their_formula)
{
    for (int64_t p = 0; p < 8; p++) {
        for (int64_t g = 1; g < 8; g++) {
            for (int64_t both = 0; both <= (p < g ? p : g); both++) {
                metric_count c = { p, g, both };
                double iou = metric_iou(c);
                ck_assert_double_eq_tol(metric_dice(c), 2 * iou / (1 + iou), 1e-15);
            }
        }
    }
}
END_TEST

START_TEST(empty_missed_and_false_alarms_are_told_apart)
{
    metric_summary s;

    memset(&s, 0, sizeof s);
    metric_summary_add(&s, (metric_count){ 0, 0, 0 });
    metric_summary_add(&s, (metric_count){ 5, 0, 0 });
    metric_summary_add(&s, (metric_count){ 6, 0, 0 });
    metric_summary_add(&s, (metric_count){ 0, 7, 0 });
    metric_summary_add(&s, (metric_count){ 4, 4, 4 });
    ck_assert_int_eq(s.empty, 1);
    ck_assert_int_eq(s.false_alarms, 2);
    ck_assert_int_eq(s.missed, 1);
    ck_assert_int_eq(s.defined, 2);
    ck_assert_double_eq(metric_summary_mean(&s, METRIC_DICE), 0.5);
    ck_assert(isnan(metric_dice((metric_count){ 5, 0, 0 })));
}
END_TEST

START_TEST(mean_over_classes_leaves_out_what_has_no_value)
{
    metric_summary s[3];

    memset(s, 0, sizeof s);
    ck_assert(isnan(metric_summary_mean_of(s, 0, 3, METRIC_DICE)));
    metric_summary_add(&s[0], (metric_count){ 4, 4, 4 });
    metric_summary_add(&s[1], (metric_count){ 4, 4, 2 });
    ck_assert_double_eq(metric_summary_mean_of(s, 1, 3, METRIC_DICE), 0.5);
    ck_assert_double_eq(metric_summary_mean_of(s, 0, 3, METRIC_DICE), 0.75);
}
END_TEST

START_TEST(regions_are_counted_by_channel)
{
    const uint8_t prediction[] = { 1, 0, 1, 1, 0, 0 }, label[] = { 1, 1, 1, 0, 0, 0 };
    metric_count c[2];

    metric_count_regions(prediction, label, 3, 2, c);
    ck_assert_int_eq(c[0].both, 2);
    ck_assert_int_eq(c[1].prediction, 1);
    ck_assert_int_eq(c[1].label, 1);
    ck_assert_int_eq(c[1].both, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metric");
    TCase *tests = tcase_create("metric");

    tcase_add_test(tests, mask_with_itself_is_one);
    tcase_add_test(tests, half_overlap_gives_known_values);
    tcase_add_test(tests, dice_and_iou_are_tied_by_their_formula);
    tcase_add_test(tests, empty_missed_and_false_alarms_are_told_apart);
    tcase_add_test(tests, mean_over_classes_leaves_out_what_has_no_value);
    tcase_add_test(tests, regions_are_counted_by_channel);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
