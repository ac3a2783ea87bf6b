/*
 * check_metric.c - Dice and IoU: MONAI's numbers on golden label pairs, properties, empty classes.
 */
#include <config.h>

#include "base/file/json.h"
#include "data/volume/volume.h"
#include "metric/metric.h"

#include "data/nifti/nifti_read.h"
#include "suite.h"
#include "tolerance.h"

#include <math.h>
#include <stdio.h>
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

static const char *golden(const char *name)
{
    static char path[1024];
    const char *folder = getenv("srcdir");

    snprintf(path, sizeof path, "%s/tests/golden/%s", folder != NULL ? folder : ".", name);
    return path;
}

/* Class indices of a golden label file. */
static uint8_t *read_classes(const char *number, const char *what, int64_t *voxels)
{
    char name[64];
    volume v;
    pons_error err = PONS_ERROR_INIT;

    memset(&v, 0, sizeof v);
    snprintf(name, sizeof name, "metrics/%s_%s.nii.gz", number, what);
    ck_assert_msg(volume_read_label(golden(name), &v, NULL, &err) == PONS_OK, "%s", err.text);
    *voxels = pons_volume_count(&v);
    uint8_t *classes = malloc((size_t)*voxels);
    for (int64_t i = 0; i < *voxels; i++)
        classes[i] = (uint8_t)((const int32_t *)v.voxels)[i];
    pons_volume_clear(&v);
    return classes;
}

static void compare(const json_value *expected, double found)
{
    if (expected->type == JSON_NULL)
        ck_assert(isnan(found));
    else
        ck_assert_double_eq_tol(found, expected->number, METRIC_ABSOLUTE);
}

START_TEST(golden_pairs_have_the_values_of_monai)
{
    static char text[1 << 16];
    json_document d = { NULL, NULL };
    pons_error err = PONS_ERROR_INIT;
    FILE *file = fopen(golden("metrics.json"), "rb");

    ck_assert_ptr_nonnull(file);
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    ck_assert_int_eq(json_parse(text, size, "metrics.json", PONS_DATA, &d, &err), PONS_OK);
    ck_assert_int_ge(d.root->count, 5);
    for (const json_value *c = d.root->child; c != NULL; c = c->next) {
        const char *number = json_member(c, "name")->text;
        int64_t voxels, other;
        metric_count count[3];
        uint8_t *label = read_classes(number, "label", &voxels);
        uint8_t *prediction = read_classes(number, "prediction", &other);
        ck_assert_int_eq((int)voxels, (int)other);
        metric_count_labels(prediction, label, voxels, 3, count);
        for (int i = 0; i < 2; i++) {
            int class = (int)json_item(json_member(c, "classes"), i)->number;
            compare(json_item(json_member(c, "dice"), i), metric_dice(count[class]));
            compare(json_item(json_member(c, "iou"), i), metric_iou(count[class]));
        }
        free(label);
        free(prediction);
    }
    json_free(&d);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("metric");

    tcase_add_test(c, golden_pairs_have_the_values_of_monai);
    tcase_add_test(c, mask_with_itself_is_one);
    tcase_add_test(c, half_overlap_gives_known_values);
    tcase_add_test(c, dice_and_iou_are_tied_by_their_formula);
    tcase_add_test(c, empty_missed_and_false_alarms_are_told_apart);
    tcase_add_test(c, mean_over_classes_leaves_out_what_has_no_value);
    tcase_add_test(c, regions_are_counted_by_channel);
    return suite_run();
}
