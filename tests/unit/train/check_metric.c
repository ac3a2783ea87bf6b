/*
 * check_metric.c - Dice and IoU: MONAI's values on golden label pairs, properties, empty classes.
 */
#include <config.h>

#include "base/file/json.h"
#include "data/volume/volume.h"
#include "base/random.h"
#include "metric/best_metric.h"
#include "metric/class_ranking.h"
#include "metric/label_runs.h"
#include "metric/metric.h"

#include "data/nifti/nifti_read.h"
#include "support/data/golden_file.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

START_TEST(dice_of_a_mask_with_itself_is_one)
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

START_TEST(half_overlap_gives_known_dice_and_iou)
{
    const uint8_t prediction[] = { 1, 1, 0, 0 }, label[] = { 0, 1, 1, 0 };
    metric_count c[2];

    metric_count_labels(prediction, label, 4, 2, c);
    ck_assert_double_eq(metric_dice(c[1]), 0.5);
    ck_assert_double_eq_tol(metric_iou(c[1]), 1.0 / 3, 1e-15);
}
END_TEST

START_TEST(ignored_voxels_are_in_no_count)
{
    uint8_t prediction[] = { 1, 1, 0, 0, 1 }, label[] = { 0, 255, 1, 255, 1 };
    uint8_t regions[] = { 1, 0, 1, 1, 0, 1 }, truth[] = { 1, 0, 255, 255, 1, 1 };
    metric_count c[2];
    int64_t ignored = metric_clear_ignored(prediction, label, 5, 1, 255);

    ck_assert_int_eq(ignored, 2);
    metric_count_labels(prediction, label, 5, 2, c);
    metric_count_drop(c, 2, false, ignored);
    ck_assert_int_eq(c[0].voxels, 3);
    ck_assert_int_eq(c[0].prediction, 1);
    ck_assert_int_eq(c[0].label, 1);
    ck_assert_int_eq(c[0].both, 0);
    ck_assert_int_eq(c[1].prediction, 2);
    ck_assert_int_eq(c[1].both, 1);
    ignored = metric_clear_ignored(regions, truth, 3, 2, 255);
    metric_count_regions(regions, truth, 3, 2, c);
    metric_count_drop(c, 2, true, ignored);
    ck_assert_int_eq(c[1].voxels, 2);
    ck_assert_int_eq(c[0].prediction, 1);
    ck_assert_int_eq(c[0].label, 2);
    ck_assert_int_eq(c[1].both, 1);
}
END_TEST

START_TEST(dice_and_iou_are_tied_by_their_formula)
{
    for (int64_t p = 0; p < 8; p++) {
        for (int64_t g = 1; g < 8; g++) {
            for (int64_t both = 0; both <= (p < g ? p : g); both++) {
                metric_count c = { p, g, both, 9 };
                double iou = metric_iou(c);
                ck_assert_double_eq_tol(metric_dice(c), 2 * iou / (1 + iou), 1e-15);
            }
        }
    }
}
END_TEST

static void add_counts(metric_summary *s, metric_count c)
{
    class_score score = class_score_of_counts(c);

    metric_summary_add(s, &score);
}

START_TEST(empty_missed_and_false_alarm_classes_are_distinguished)
{
    metric_summary s;

    memset(&s, 0, sizeof s);
    add_counts(&s, (metric_count){ 0, 0, 0, 9 });
    add_counts(&s, (metric_count){ 5, 0, 0, 9 });
    add_counts(&s, (metric_count){ 6, 0, 0, 9 });
    add_counts(&s, (metric_count){ 0, 7, 0, 9 });
    add_counts(&s, (metric_count){ 4, 4, 4, 9 });
    ck_assert_int_eq(s.empty, 1);
    ck_assert_int_eq(s.false_alarms, 2);
    ck_assert_int_eq(s.missed, 1);
    ck_assert_int_eq(s.defined[METRIC_DICE], 2);
    ck_assert_double_eq(metric_summary_mean(&s, METRIC_DICE), 0.5);
    ck_assert(isnan(metric_dice((metric_count){ 5, 0, 0, 9 })));
}
END_TEST

START_TEST(the_mean_over_classes_skips_undefined_values)
{
    metric_summary s[3];

    memset(s, 0, sizeof s);
    ck_assert(isnan(metric_summary_mean_of(s, 0, 3, METRIC_DICE)));
    add_counts(&s[0], (metric_count){ 4, 4, 4, 9 });
    add_counts(&s[1], (metric_count){ 4, 4, 2, 9 });
    ck_assert_double_eq(metric_summary_mean_of(s, 1, 3, METRIC_DICE), 0.5);
    ck_assert_double_eq(metric_summary_mean_of(s, 0, 3, METRIC_DICE), 0.75);
}
END_TEST

static class_score with_hd95(metric_count c, double value)
{
    class_score score = class_score_of_counts(c);

    score.value[METRIC_HD95] = value;
    return score;
}

START_TEST(missed_classes_are_undefined_and_absent_ones_are_not)
{
    const class_score score[] = {
        with_hd95((metric_count){ 4, 4, 2, 9 }, 3), with_hd95((metric_count){ 0, 4, 0, 9 }, NAN),
        with_hd95((metric_count){ 4, 0, 0, 9 }, NAN), with_hd95((metric_count){ 0, 0, 0, 9 }, NAN)
    };
    metric_summary s[2];

    memset(s, 0, sizeof s);
    for (int i = 0; i < 4; i++)
        metric_summary_add(&s[0], &score[i]);
    metric_summary_add(&s[1], &score[1]);
    ck_assert_int_eq(s[0].undefined[METRIC_HD95], 1);
    ck_assert_int_eq(s[0].undefined[METRIC_PRECISION], 1);
    ck_assert_int_eq(s[0].undefined[METRIC_DICE], 0); /* it is 0 where a class is missed */
    ck_assert_int_eq(metric_summary_undefined_of(s, 0, 2, METRIC_HD95), 2);
    ck_assert_int_eq(metric_summary_undefined_of(s, 1, 2, METRIC_HD95), 1);
}
END_TEST

START_TEST(a_validation_that_misses_less_is_better_whatever_its_mean)
{
    const best_metric hd95 = { METRIC_HD95, -1 }, dice = { METRIC_DICE, -1 };

    ck_assert(best_metric_improves(hd95, (best_score){ 9, 0 }, (best_score){ 1, 1 }));
    ck_assert(!best_metric_improves(hd95, (best_score){ 1, 1 }, (best_score){ 9, 0 }));
    ck_assert(best_metric_improves(hd95, (best_score){ 1, 2 }, (best_score){ 9, 2 }));
    ck_assert(!best_metric_improves(hd95, (best_score){ 9, 2 }, (best_score){ 9, 2 }));
    ck_assert(!best_metric_improves(hd95, (best_score){ NAN, 0 }, (best_score){ 9, 2 }));
    ck_assert(best_metric_improves(dice, (best_score){ 0.6, 0 }, (best_score){ 0.5, 0 }));
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

/* Class indices of a golden label file. */
static uint8_t *read_classes(const char *number, const char *what, int64_t *voxels)
{
    char name[64];
    volume v;
    pons_error err = PONS_ERROR_INIT;

    memset(&v, 0, sizeof v);
    snprintf(name, sizeof name, "metrics/%s_%s.nii.gz", number, what);
    ck_assert_msg(nifti_read_label(golden_path(name), &v, NULL, &err) == PONS_OK, "%s", err.text);
    *voxels = pons_volume_count(&v);
    uint8_t *classes = malloc((size_t)*voxels);
    for (int64_t i = 0; i < *voxels; i++)
        classes[i] = (uint8_t)((const int32_t *)v.voxels)[i];
    pons_volume_clear(&v);
    return classes;
}

static void compare_golden_case(const json_t *expected, double found)
{
    if (json_is_null(expected))
        ck_assert(isnan(found));
    else
        ck_assert_double_eq_tol(found, json_number_value(expected), METRIC_ABSOLUTE);
}

START_TEST(golden_pairs_have_the_values_of_monai)
{
    json_t *d = golden_json("metrics.json");
    const json_t *c;
    size_t n;

    ck_assert_int_ge((int)json_array_size(d), 5);
    json_array_foreach(d, n, c) {
        const char *number = json_string_value(json_object_get(c, "name"));
        int64_t voxels, other;
        metric_count count[3];
        uint8_t *label = read_classes(number, "label", &voxels);
        uint8_t *prediction = read_classes(number, "prediction", &other);
        ck_assert_int_eq((int)voxels, (int)other);
        metric_count_labels(prediction, label, voxels, 3, count);
        for (size_t i = 0; i < 2; i++) {
            int class = (int)json_number_value(json_array_get(json_object_get(c, "classes"), i));
            compare_golden_case(json_array_get(json_object_get(c, "dice"), i),
                                metric_dice(count[class]));
            compare_golden_case(json_array_get(json_object_get(c, "iou"), i),
                                metric_iou(count[class]));
        }
        free(label);
        free(prediction);
    }
    json_decref(d);
}
END_TEST

enum { RUN_VOXELS = 500 };

static int32_t mark_voxels(volume *v, uint64_t number, int64_t at, int32_t value)
{
    uint32_t word[4];

    random_voxels(number, (uint64_t)at, word);
    value = word[0] % 11 == 0 ? (int32_t)(word[1] % 3) : value;
    if (v->type == PONS_U8)
        ((uint8_t *)v->voxels)[at] = (uint8_t)value;
    else
        ((int32_t *)v->voxels)[at] = value;
    return value;
}

/* Fill a volume with runs of some ten equal values. */
static void fill_with_runs(volume *v, pons_type type, int channels, uint64_t number)
{
    static const int64_t extent[3] = { RUN_VOXELS, 1, 1 };
    pons_error err = PONS_ERROR_INIT;
    int32_t value = 0;

    ck_assert_int_eq(pons_volume_init(v, type, channels, extent, &err), PONS_OK);
    for (int64_t at = 0; at < RUN_VOXELS * channels; at++)
        value = mark_voxels(v, number, at, value);
}

/* Each voxel is in one run, which has its values, and a neighbouring run has others. */
static void compare_runs(const volume *p, const volume *g, int channel)
{
    label_scan scan = { .prediction = p, .label = g, .channel = channel, .at = 3,
                        .end = RUN_VOXELS - 2 };
    label_run run, last = { -1, -1, 0, 3 };

    while (label_scan_next(&scan, &run)) {
        ck_assert_int_eq(run.first, last.end);
        ck_assert_int_gt(run.end, run.first);
        ck_assert(run.prediction != last.prediction || run.label != last.label);
        for (int64_t at = run.first; at < run.end; at++) {
            ck_assert_int_eq(label_at(p, at * p->channels + channel), run.prediction);
            ck_assert_int_eq(label_at(g, at * g->channels + channel), run.label);
        }
        last = run;
    }
    ck_assert_int_eq(last.end, RUN_VOXELS - 2);
}

START_TEST(runs_of_labels_are_whole_in_all_types_and_channels)
{
    static const pons_type types[] = { PONS_U8, PONS_I32 };

    for (uint64_t number = 0; number < 8; number++) {
        int channels = number % 4 < 2 ? 1 : 3;
        volume p, g;

        fill_with_runs(&p, types[number % 2], channels, 2 * number);
        fill_with_runs(&g, types[number / 2 % 2], channels, 2 * number + 1);
        for (int channel = 0; channel < channels; channel++)
            compare_runs(&p, &g, channel);
        pons_volume_clear(&p);
        pons_volume_clear(&g);
    }
}
END_TEST

/* Six images of three classes, by hand; the two equal values of class 0 count half. */
START_TEST(places_areas_and_confusion_of_a_small_ranking)
{
    const int32_t label[] = { 0, 0, 1, 1, 2, 2 };
    const float x[] = { 0.7f, 0.2f, 0.1f, 0.4f, 0.5f, 0.1f, 0.4f, 0.4f, 0.2f,
                        0.1f, 0.8f, 0.1f, 0.2f, 0.2f, 0.6f, 0.5f, 0.1f, 0.4f };
    const int64_t expected[] = { 1, 1, 0, 1, 1, 0, 1, 0, 1 };
    const class_ranking r = { 6, 3, label, x };
    const class_ranking alone = { 2, 3, label, x };
    int64_t found[9];
    double area;
    pons_error err = PONS_ERROR_INIT;

    class_ranking_confusion(&r, found);
    ck_assert_mem_eq(found, expected, sizeof expected);
    ck_assert_int_eq(class_ranking_place(&r, 0), 0);
    ck_assert_int_eq(class_ranking_place(&r, 2), 1);
    ck_assert_int_eq(class_ranking_place(&r, 5), 1);
    /* 0.7 is above 0.4 0.1 0.2 0.5; 0.4 is above 0.1 and 0.2 and equal to 0.4: 6.5 of 8 pairs */
    ck_assert_int_eq(class_ranking_auc(&r, 0, &area, &err), PONS_OK);
    ck_assert_double_eq(area, 6.5 / 8);
    ck_assert_int_eq(class_ranking_auc(&r, 2, &area, &err), PONS_OK);
    ck_assert_double_eq(area, 1);
    ck_assert_int_eq(class_ranking_auc(&alone, 0, &area, &err), PONS_OK);
    ck_assert(isnan(area));
}
END_TEST

START_TEST(nan_ranks_below_all_numbers)
{
    const int32_t label[] = { 0, 1, 0 };
    const float x[] = { NAN, 0.3f, 0.4f, 0.6f, NAN, 0.3f, NAN, NAN, NAN };
    const class_ranking r = { 3, 3, label, x };
    double area;
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(class_ranking_decide(&r, 0), 2);
    ck_assert_int_eq(class_ranking_place(&r, 0), 2);
    ck_assert_int_eq(class_ranking_place(&r, 1), 2);
    ck_assert_int_eq(class_ranking_auc(&r, 0, &area, &err), PONS_OK);
    ck_assert_double_eq(area, 0);
    ck_assert_int_eq(class_ranking_auc(&r, 1, &area, &err), PONS_OK);
    ck_assert_double_eq(area, 0.25);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("metric");

    tcase_add_test(c, golden_pairs_have_the_values_of_monai);
    tcase_add_test(c, dice_of_a_mask_with_itself_is_one);
    tcase_add_test(c, half_overlap_gives_known_dice_and_iou);
    tcase_add_test(c, ignored_voxels_are_in_no_count);
    tcase_add_test(c, dice_and_iou_are_tied_by_their_formula);
    tcase_add_test(c, empty_missed_and_false_alarm_classes_are_distinguished);
    tcase_add_test(c, the_mean_over_classes_skips_undefined_values);
    tcase_add_test(c, missed_classes_are_undefined_and_absent_ones_are_not);
    tcase_add_test(c, a_validation_that_misses_less_is_better_whatever_its_mean);
    tcase_add_test(c, regions_are_counted_by_channel);
    tcase_add_test(c, runs_of_labels_are_whole_in_all_types_and_channels);
    tcase_add_test(c, places_areas_and_confusion_of_a_small_ranking);
    tcase_add_test(c, nan_ranks_below_all_numbers);
    return suite_run();
}
