/*
 * check_dataset_statistics.c - the statistics of two small datasets are those of nnU-Net's
 * fingerprint; a case that cannot be read is named.
 */
#include "plan/dataset_statistics.h"

#include <math.h>

#include "base/file/json.h"
#include "base/thread/parallel.h"
#include "data/case/case_read.h"
#include "plan/case_scan.h"
#include "support/data/golden_file.h"
#include "support/dataset_maker.h"
#include "support/must.h"
#include "support/suite.h"

/*
 * The fingerprint drew a million voxels from each case. The mean of n draws deviates by about
 * std / sqrt(n) of 3e6 draws; percentiles lie between two voxels of few.
 */
enum { CASES = 3 };
#define DRAWN 1e-3

static dataset *open_golden(const char *name, int channels)
{
    static const char *const labels[] = { "background:0", "a:1", "b:2" };
    char image[2][1024], label[1024];
    const char *const globs[] = { image[0], image[1] };
    dataset_settings s = { .image = { channels, globs }, .label = label, .validation = "none",
                           .labels = { 3, labels } };
    dataset *d;

    for (int c = 0; c < channels; c++)
        snprintf(image[c], sizeof image[0], "%s/%s/imagesTr/*_%04d.nii.gz",
                 golden_path("nnunet/fingerprint"), name, c);
    snprintf(label, sizeof label, "%s/%s/labelsTr/*.nii.gz", golden_path("nnunet/fingerprint"),
             name);
    MUST(dataset_open(&s, &d, &error));
    return d;
}

static double number_at(const json_t *list, int i, int a)
{
    return json_number_value(json_array_get(json_array_get(list, (size_t)i), (size_t)a));
}

/* nnU-Net lists axes as k j i. */
static void assert_geometry(const dataset_statistics *s, const json_t *print, const json_t *cases)
{
    for (int i = 0; i < CASES; i++) {
        const json_t *one = json_array_get(cases, (size_t)i);
        const json_t *shape = json_object_get(one, "shape");

        ck_assert_int_eq(s->cases[i].foreground,
                         json_integer_value(json_object_get(one, "foreground_voxels")));
        ck_assert_int_eq(s->cases[i].foreground,
                         s->cases[i].class_voxels[1] + s->cases[i].class_voxels[2]);
        for (int a = 0; a < 3; a++) {
            ck_assert_int_eq(s->cases[i].extent[a],
                             json_integer_value(json_array_get(shape, (size_t)(2 - a))));
            ck_assert(s->cases[i].cropped[a]
                      == number_at(json_object_get(print, "shapes_after_crop"), i, 2 - a));
            ck_assert_double_eq_tol(s->cases[i].spacing[a],
                                    number_at(json_object_get(print, "spacings"), i, 2 - a), 1e-6);
        }
    }
    ck_assert_double_eq_tol(s->cropped_share, json_number_value(json_object_get(print,
                            "median_relative_size_after_cropping")), 1e-12);
}

static double property(const json_t *print, int channel, const char *name)
{
    char key[16];

    snprintf(key, sizeof key, "%d", channel);
    print = json_object_get(print, "foreground_intensity_properties_per_channel");
    return json_number_value(json_object_get(json_object_get(print, key), name));
}

static void assert_intensity(const intensity_statistics *s, const json_t *print, int channel)
{
    double tolerance = DRAWN * property(print, channel, "std");

    ck_assert_double_eq_tol(s->mean, property(print, channel, "mean"), tolerance);
    ck_assert_double_eq_tol(s->std, property(print, channel, "std"), tolerance);
    ck_assert_double_eq_tol(s->median, property(print, channel, "median"), tolerance);
    ck_assert_double_eq_tol(s->low, property(print, channel, "percentile_00_5"), tolerance);
    ck_assert_double_eq_tol(s->high, property(print, channel, "percentile_99_5"), tolerance);
    ck_assert(s->min == property(print, channel, "min"));
    ck_assert(s->max == property(print, channel, "max"));
}

START_TEST(statistics_are_those_of_the_fingerprint)
{
    json_t *golden = golden_json("nnunet/fingerprint.json"), *one;
    size_t n;

    json_array_foreach(golden, n, one) {
        const json_t *print = json_object_get(one, "fingerprint");
        dataset *d = open_golden(json_string_value(json_object_get(one, "name")), (int)n + 1);
        dataset_statistics *s;

        MUST(dataset_statistics_make(d, NULL, &s, &error));
        ck_assert_int_eq(s->case_count, CASES);
        ck_assert_int_eq(s->class_count, 3);
        assert_geometry(s, print, json_object_get(one, "cases"));
        for (int c = 0; c < s->channels; c++)
            assert_intensity(&s->intensity[c], print, c);
        dataset_statistics_free(s);
        dataset_close(d);
    }
    ck_assert_int_eq(n, 2);
    json_decref(golden);
}
END_TEST

static int compare_floats(const void *a, const void *b)
{
    float left = *(const float *)a, right = *(const float *)b;

    return (left > right) - (left < right);
}

/* The scan of a case in the order of its files, beside its volumes. */
START_TEST(a_scan_finds_the_voxels_of_the_volumes)
{
    dataset *d = open_golden("Dataset101_TinyCT", 1);

    for (int rank = 0; rank < CASES; rank++) {
        int64_t class_voxels[3] = { 0 }, counted[3] = { 0 }, found = 0;
        case_scan scan;
        pons_case c;

        ck_assert(case_scan_read(d, rank, &scan, class_voxels));
        MUST(case_read(d, rank, &c, &error));
        ck_assert_mem_eq(scan.grid.affine, c.image.affine, sizeof c.image.affine);
        float *values = malloc((size_t)pons_volume_count(&c.image) * sizeof *values);
        for (int64_t v = 0; v < pons_volume_count(&c.image); v++) {
            uint8_t class = ((const uint8_t *)c.label.voxels)[v];
            counted[class]++;
            if (class != 0)
                values[found++] = ((const float *)c.image.voxels)[v];
        }
        ck_assert_mem_eq(class_voxels, counted, sizeof counted);
        ck_assert_int_eq(scan.foreground, found);
        qsort(values, (size_t)found, sizeof *values, compare_floats);
        qsort(scan.values, (size_t)found, sizeof *values, compare_floats);
        ck_assert_mem_eq(values, scan.values, (size_t)found * sizeof *values);
        free(values);
        free(scan.values);
        case_clear(&c);
    }
    dataset_close(d);
}
END_TEST

START_TEST(a_scan_leaves_other_cases_to_the_reader)
{
    dataset *d = open_golden("Dataset101_TinyCT", 1);
    dataset *channels = open_golden("Dataset102_TinyMR", 2);
    int64_t class_voxels[3] = { 0 };
    const int64_t none[3] = { 0 };
    case_scan scan;

    ck_assert(!case_scan_read(channels, 0, &scan, class_voxels));
    dataset fewer = *d;
    fewer.class_count = 2; /* an id of the label is not listed */
    ck_assert(!case_scan_read(&fewer, 0, &scan, class_voxels));
    ck_assert_mem_eq(class_voxels, none, sizeof none);
    dataset_close(channels);
    dataset_close(d);
}
END_TEST

START_TEST(threads_change_no_bit)
{
    dataset *d = open_golden("Dataset102_TinyMR", 2);
    dataset_statistics *alone, *many;
    thread_budget none = { 0 }, some = { 3 };
    thread_budget *before = thread_budget_set(&none);

    MUST(dataset_statistics_make(d, NULL, &alone, &error));
    thread_budget_set(&some);
    MUST(dataset_statistics_make(d, NULL, &many, &error));
    thread_budget_set(before);
    ck_assert_mem_eq(alone->intensity, many->intensity, 2 * sizeof *alone->intensity);
    dataset_statistics_free(alone);
    dataset_statistics_free(many);
    dataset_close(d);
}
END_TEST

/* ---- quantiles ------------------------------------------------------------------------------- */

/* A permutation of -count/2 .. count/2 - 1, without a pattern. */
static void fill_shuffled(float *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = (float)(int)((int64_t)i * 7919 % count) - (float)(count / 2);
}

START_TEST(kept_quantiles_hold_the_percentiles)
{
    enum { COUNT = 100000, KEPT = 2000 };
    float *values = malloc(COUNT * sizeof *values);
    intensity_statistics s;
    intensity_sample sample;

    fill_shuffled(values, COUNT);
    MUST(intensity_sample_make(values, COUNT, KEPT, &sample, &error));
    ck_assert_int_eq(sample.count, KEPT);
    for (int i = 0; i < COUNT; i++)
        ck_assert(values[i] == (float)(i - COUNT / 2));
    MUST(intensity_statistics_make(&sample, 1, 1, &s, &error));
    ck_assert_double_eq_tol(s.mean, -0.5, 1e-9);
    ck_assert_double_eq_tol(s.std, COUNT / sqrt(12), 1e-3);
    ck_assert_double_eq_tol(s.low, -0.495 * COUNT, COUNT / KEPT);
    ck_assert_double_eq_tol(s.median, 0, COUNT / KEPT);
    ck_assert_double_eq_tol(s.high, 0.495 * COUNT, COUNT / KEPT);
    intensity_sample_clear(&sample);
    free(values);
}
END_TEST

START_TEST(cases_count_alike)
{
    float few[] = { 10, 10 }, many[1000];
    intensity_sample sample[3];
    intensity_statistics s;

    for (int i = 0; i < 1000; i++)
        many[i] = 20;
    MUST(intensity_sample_make(few, 2, 100, &sample[0], &error));
    MUST(intensity_sample_make(many, 1000, 100, &sample[1], &error));
    MUST(intensity_sample_make(NULL, 0, 100, &sample[2], &error));
    MUST(intensity_statistics_make(sample, 3, 1, &s, &error));
    ck_assert_double_eq_tol(s.mean, 15, 1e-12);
    ck_assert_double_eq_tol(s.std, 5, 1e-12);
    ck_assert(s.min == 10 && s.low == 10 && s.high == 20 && s.max == 20);
    intensity_sample_clear(&sample[0]);
    intensity_sample_clear(&sample[1]);
}
END_TEST

/* ---- orientations ---------------------------------------------------------------------------- */

/* 6 x 5 x 4 voxels of 1 x 1 x 2 mm along RAS, stored with axes in the given order. */
static void write_oriented(const char *name, const int order[3], const bool flip[3])
{
    static const int64_t extent[3] = { 6, 5, 4 };
    volume v;

    MUST(pons_volume_init(&v, PONS_F32, 1, extent, &error));
    v.affine[2][2] = 2;
    for (int64_t n = 0; n < 120; n++)
        ((float *)v.voxels)[n] = n == 0 || n == 119;
    MUST(pons_volume_reorient(&v, order, flip, &error));
    MUST(nifti_write_as(maker_path("%s", name), &v, NULL, 2, &error));
    pons_volume_clear(&v);
}

START_TEST(axes_are_those_of_ras_where_orientations_differ)
{
    static const struct { int order[3]; bool flip[3]; } stored[] = {
        { { 0, 1, 2 }, { false } }, { { 2, 0, 1 }, { false, true, false } },
        { { 1, 2, 0 }, { true, false, true } }
    };
    static const char *const labels[] = { "background:0", "a:1" };
    dataset_settings s = { .validation = "none", .labels = { 2, labels } };
    const char *image;
    dataset_statistics *found;
    dataset *d;

    make_root();
    folder_make(maker_path("img"), &error);
    folder_make(maker_path("lab"), &error);
    for (int i = 0; i < 3; i++) {
        char name[2][32];
        snprintf(name[0], sizeof name[0], "img/c%d.nii", i);
        snprintf(name[1], sizeof name[1], "lab/c%d.nii", i);
        write_oriented(name[0], stored[i].order, stored[i].flip);
        write_oriented(name[1], stored[i].order, stored[i].flip);
    }
    image = maker_path("img/*.nii");
    s.image = (pons_texts){ 1, &image };
    s.label = maker_path("lab/*.nii");
    MUST(dataset_open(&s, &d, &error));
    MUST(dataset_statistics_make(d, NULL, &found, &error));
    ck_assert(found->oriented);
    for (int i = 0; i < 3; i++) {
        ck_assert_mem_eq(found->cases[i].extent, ((int64_t[]){ 6, 5, 4 }), 3 * sizeof(int64_t));
        ck_assert_mem_eq(found->cases[i].cropped, ((int64_t[]){ 6, 5, 4 }), 3 * sizeof(int64_t));
        ck_assert_double_eq_tol(found->cases[i].spacing[2], 2, 1e-6);
    }
    dataset_statistics_free(found);
    dataset_close(d);
    remove_root();
}
END_TEST

/* ---- bad cases ------------------------------------------------------------------------------- */

static double slope(int64_t i, int64_t j, int64_t k)
{
    return (double)(i + j + k);
}

static double corner(int64_t i, int64_t j, int64_t k)
{
    return i < 2 && j < 2 && k < 2;
}

static double foreign_id(int64_t i, int64_t j, int64_t k)
{
    return i == 1 ? 9 : 0;
}

START_TEST(the_first_bad_case_is_named)
{
    static const char *const labels[] = { "background:0", "a:1" };
    const char *image;
    dataset_settings s = { .validation = "none", .labels = { 2, labels } };
    dataset_statistics *none = NULL;
    pons_error err = PONS_ERROR_INIT;
    dataset *d;

    make_root();
    for (int i = 0; i < 8; i++) {
        char name[2][32];
        snprintf(name[0], sizeof name[0], "img/c%d.nii", i);
        snprintf(name[1], sizeof name[1], "lab/c%d.nii", i);
        maker_volume(name[0], 6, 5, 4, slope, 0, 16);
        maker_volume(name[1], 6, 5, 4, i == 5 || i == 2 ? foreign_id : corner, 0, 2);
    }
    image = maker_path("img/*.nii");
    s.image = (pons_texts){ 1, &image };
    s.label = maker_path("lab/*.nii");
    MUST(dataset_open(&s, &d, &error));
    ck_assert_int_eq(dataset_statistics_make(d, NULL, &none, &err), PONS_DATA);
    ck_assert_ptr_null(none);
    ck_assert_msg(strstr(err.text, "case 'c2'") != NULL, "%s", err.text);
    dataset_close(d);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("dataset statistics");

    tcase_add_test(c, statistics_are_those_of_the_fingerprint);
    tcase_add_test(c, a_scan_finds_the_voxels_of_the_volumes);
    tcase_add_test(c, a_scan_leaves_other_cases_to_the_reader);
    tcase_add_test(c, threads_change_no_bit);
    tcase_add_test(c, kept_quantiles_hold_the_percentiles);
    tcase_add_test(c, cases_count_alike);
    tcase_add_test(c, axes_are_those_of_ras_where_orientations_differ);
    tcase_add_test(c, the_first_bad_case_is_named);
    return suite_run();
}
