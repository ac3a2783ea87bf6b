/*
 * check_froc.c - FROC, detections, targets and tissue: MONAI's values on golden maps and masks, and
 * properties; files of maps.
 */
#include <config.h>

#include "base/build_feature.h"
#include "base/file/file.h"
#include "base/file/json.h"
#include "data/slide/map_file.h"
#include "data/slide/tissue_mask.h"
#include "detection/froc.h"

#include "support/data/golden_arrays.h"
#include "support/nifti_maker.h"
#include "support/root.h"
#include "support/run/run_pons.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- golden values --------------------------------------------------------------------------- */

static json_t *rows;
static safetensors *arrays;

static void open_golden(void)
{
    rows = golden_json("froc.json");
    arrays = open_arrays("froc.safetensors");
}

static void close_golden(void)
{
    json_decref(rows);
    safetensors_close(arrays);
}

static bool is_kind(const json_t *row, const char *kind)
{
    return strcmp(json_string_value(json_object_get(row, "kind")), kind) == 0;
}

static double number_of(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static const safetensor *array_of(const json_t *row, const char *format, int number)
{
    char name[64], tail[48];

    snprintf(tail, sizeof tail, format, number);
    snprintf(name, sizeof name, "%s/%s", json_string_value(json_object_get(row, "name")), tail);
    return find_array(arrays, name);
}

/* The targets of a mask of ids, and detections by coordinates. */
static void add_image(const json_t *row, int image, froc_sums *s)
{
    const safetensor *mask = array_of(row, "%d/mask", image);
    const safetensor *at = array_of(row, "%d/coordinates", image);
    const safetensor *p = array_of(row, "%d/probabilities", image);
    target_areas targets = { 0 };
    peak_list found = { .count = p->count };
    pons_error err = PONS_ERROR_INIT;

    targets.id = calloc((size_t)mask->count, sizeof *targets.id);
    for (int64_t i = 0; i < mask->count; i++) {
        targets.id[i] = ((const uint8_t *)mask->data)[i];
        targets.count = targets.id[i] > targets.count ? targets.id[i] : targets.count;
    }
    targets.excluded = calloc((size_t)targets.count + 1, sizeof *targets.excluded);
    found.item = calloc((size_t)p->count, sizeof *found.item);
    for (int64_t i = 0; i < p->count; i++) {
        int64_t index = 0;
        for (int axis = 0; axis < mask->rank; axis++)
            index = index * mask->extent[axis]
                    + ((const int32_t *)at->data)[i * mask->rank + axis];
        found.item[i] = (map_peak){ index, ((const float *)p->data)[i] };
    }
    ck_assert_int_eq(froc_add(s, &targets, &found, &err), PONS_OK);
    target_areas_clear(&targets);
    peak_list_clear(&found);
}

static void compare_list(const json_t *row, const char *key, const double *found, int64_t count)
{
    const json_t *expected = json_object_get(row, key);

    ck_assert_int_eq(json_array_size(expected), count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq_tol(found[i], json_number_value(json_array_get(expected, (size_t)i)),
                                DOUBLE_ABSOLUTE);
}

START_TEST(curves_and_scores_are_those_of_monai)
{
    size_t at;
    json_t *row;

    open_golden();
    json_array_foreach(rows, at, row) {
        froc_sums s = { 0 };
        froc_curve c;
        pons_error err = PONS_ERROR_INIT;

        if (!is_kind(row, "froc"))
            continue;
        for (size_t i = 0; i < json_array_size(json_object_get(row, "images")); i++)
            add_image(row, (int)i, &s);
        ck_assert_int_eq(froc_curve_make(&s, &c, &err), PONS_OK);
        compare_list(row, "false_positives_per_image", c.false_positives, c.count);
        compare_list(row, "sensitivity", c.sensitivity, c.count);
        ck_assert_double_eq_tol(froc_curve_score(&c), number_of(row, "score"), DOUBLE_ABSOLUTE);
        froc_curve_clear(&c);
        froc_sums_clear(&s);
    }
    close_golden();
}
END_TEST

static void compare_peaks(const json_t *row, const peak_list *found, int64_t columns)
{
    const json_t *expected = json_object_get(row, "peaks");

    ck_assert_int_eq(found->count, json_array_size(expected));
    for (int64_t i = 0; i < found->count; i++) {
        const json_t *peak = json_array_get(expected, (size_t)i);
        int64_t at = json_integer_value(json_array_get(peak, 1)) * columns
                     + json_integer_value(json_array_get(peak, 2));
        ck_assert_int_eq(found->item[i].at, at);
        ck_assert_float_eq(found->item[i].probability,
                           (float)json_number_value(json_array_get(peak, 0)));
    }
}

static void compare_excluded(const json_t *row, const target_areas *t)
{
    const json_t *expected = json_object_get(row, "excluded");
    size_t next = 0;

    for (int32_t n = 0; n < t->count; n++) {
        bool excluded = json_integer_value(json_array_get(expected, next)) == n + 1;
        ck_assert_int_eq(t->excluded[n], excluded);
        next += excluded;
    }
    ck_assert_int_eq(next, json_array_size(expected));
}

START_TEST(detections_and_targets_are_those_of_monai)
{
    size_t at;
    json_t *row;

    open_golden();
    json_array_foreach(rows, at, row) {
        peak_list found;
        target_areas t;
        pons_error err = PONS_ERROR_INIT;

        if (!is_kind(row, "targets"))
            continue;
        const safetensor *map = array_of(row, "map", 0), *mask = array_of(row, "mask", 0);
        const safetensor *areas = array_of(row, "areas", 0);
        double mm = number_of(row, "spacing");
        const target_rule rule = { { mm, mm }, 75, 200 };

        ck_assert_int_eq(map_peaks_find(map->data, map->extent, (float)number_of(row, "threshold"),
                                        (int)number_of(row, "box"), &found, &err), PONS_OK);
        compare_peaks(row, &found, map->extent[1]);
        ck_assert_int_eq(target_areas_find(mask->data, mask->extent, &rule, &t, &err), PONS_OK);
        ck_assert_mem_eq(t.id, areas->data, areas->size);
        compare_excluded(row, &t);
        peak_list_clear(&found);
        target_areas_clear(&t);
    }
    close_golden();
}
END_TEST

START_TEST(tissue_is_that_of_monai)
{
    size_t at;
    json_t *row;

    open_golden();
    json_array_foreach(rows, at, row) {
        if (!is_kind(row, "tissue"))
            continue;
        const safetensor *image = array_of(row, "image", 0), *mask = array_of(row, "mask", 0);
        uint8_t *rgb = malloc(image->size), *found = malloc(mask->size);

        for (int64_t i = 0; i < mask->count; i++)
            for (int c = 0; c < 3; c++)
                rgb[3 * i + c] = ((const uint8_t *)image->data)[c * mask->count + i];
        tissue_mask_make(rgb, mask->count, found);
        ck_assert_mem_eq(found, mask->data, mask->size);
        free(rgb);
        free(found);
    }
    close_golden();
}
END_TEST

/* ---- maps ------------------------------------------------------------------------------------ */

static const char *const class_names[] = { "a", "b \"quoted\"", "\xc3\xa9" };
static const map_facts facts = { .rows = 300, .columns = 270, .class_count = 3,
                                 .name = class_names, .slide = "dir/s.tif", .step = { 128, 64.5 },
                                 .micrometres = { 31.25, 15.1 } };

static float value_at(int64_t i)
{
    return (float)(i % 9973) / 9973;
}

/* Write the facts' map, its last band first. */
static void write_map(const char *path)
{
    int64_t row = facts.columns * facts.class_count;
    float *values = malloc((size_t)(facts.rows * row) * sizeof *values);
    map_writer *w;

    for (int64_t i = 0; i < facts.rows * row; i++)
        values[i] = value_at(i);
    MUST(map_writer_open(path, &facts, &w, &error));
    MUST(map_writer_put(w, 1, values + MAP_TILE * row, &error));
    MUST(map_writer_put(w, 0, values, &error));
    MUST(map_writer_close(w, &error));
    free(values);
}

START_TEST(a_map_of_several_classes_is_read_as_it_was_written)
{
    map_file m;

    write_map(in_root("map.tiff"));
    MUST(map_file_read(in_root("map.tiff"), &m, &error));
    ck_assert_int_eq(m.facts.rows, facts.rows);
    ck_assert_int_eq(m.facts.columns, facts.columns);
    ck_assert_int_eq(m.facts.class_count, 3);
    ck_assert_str_eq(m.facts.slide, facts.slide);
    for (int c = 0; c < 3; c++)
        ck_assert_str_eq(m.facts.name[c], class_names[c]);
    for (int a = 0; a < 2; a++) {
        ck_assert_double_eq(m.facts.step[a], facts.step[a]);
        ck_assert_double_eq(m.facts.micrometres[a], facts.micrometres[a]);
    }
    for (int64_t i = 0; i < facts.rows * facts.columns * 3; i++)
        ck_assert_float_eq(m.values[i], value_at(i));
    map_file_clear(&m);
}
END_TEST

START_TEST(more_classes_than_samples_of_a_file_are_refused)
{
    map_facts many = facts;
    pons_error err = PONS_ERROR_INIT;
    map_writer *w;

    many.class_count = UINT16_MAX + 1;
    ck_assert_int_eq(map_writer_open(in_root("map.tiff"), &many, &w, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "65536 classes, expected at most the 65535") != NULL, "%s",
                  err.text);
}
END_TEST

static void expect_no_map(const char *name, const char *words)
{
    pons_error err = PONS_ERROR_INIT;
    map_file m;

    ck_assert_int_eq(map_file_read(in_root(name), &m, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, words) != NULL && strchr(err.text, '\n') == NULL, "%s",
                  err.text);
    map_file_clear(&m);
}

/* A small file whose map has 2^20 rows, all but the first of which have no tiles. */
static void write_bomb(const char *path)
{
    map_facts high = facts;
    float *values = calloc((size_t)(MAP_TILE * facts.columns * 3), sizeof *values);
    map_writer *w;

    high.rows = 1 << 20;
    MUST(map_writer_open(path, &high, &w, &error));
    MUST(map_writer_put(w, 0, values, &error));
    MUST(map_writer_close(w, &error));
    free(values);
}

/* A map of steps that no slide has. */
static void write_steps(const char *path)
{
    const map_facts far = { .rows = 1, .columns = 1, .class_count = 1, .name = class_names,
                            .step = { 1e300, 1 } };
    const float value = 0;
    map_writer *w;

    MUST(map_writer_open(path, &far, &w, &error));
    MUST(map_writer_put(w, 0, &value, &error));
    MUST(map_writer_close(w, &error));
}

START_TEST(damaged_maps_are_refused_in_one_line)
{
    char *data;
    size_t size;

    write_map(in_root("map.tiff"));
    MUST(file_read(in_root("map.tiff"), 1 << 28, &data, &size, PONS_DATA, &error));
    maker_write(in_root("cut.tiff"), data, size / 2);
    expect_no_map("cut.tiff", "cut.tiff");
    memset(data + 2000, 0x55, 500);
    maker_write(in_root("damaged.tiff"), data, size);
    expect_no_map("damaged.tiff", "damaged.tiff");
    write_bomb(in_root("bomb.tiff"));
    expect_no_map("bomb.tiff", "expected 1 to 268435456 in all");
    write_steps(in_root("steps.tiff"));
    expect_no_map("steps.tiff", "'step' is 1e+300, expected 1 to 16777216 pixels");
    maker_write(in_root("text.tiff"), "no map", 6);
    expect_no_map("text.tiff", "text.tiff");
    expect_no_map("absent.tiff", "No such file");
    free(data);
}
END_TEST

START_TEST(a_dropped_map_leaves_no_file)
{
    pons_error err = PONS_ERROR_INIT;
    map_writer *w;

    MUST(map_writer_open(in_root("map.tiff"), &facts, &w, &error));
    pons_fail(&err, PONS_DATA, "the slide ends");
    ck_assert_int_eq(map_writer_close(w, &err), PONS_DATA);
    ck_assert_str_eq(err.text, "the slide ends");
    ck_assert_int_eq(rmdir(root), 0);
    make_root();
}
END_TEST

/* ---- properties ------------------------------------------------------------------------------ */

START_TEST(a_grey_slide_has_no_tissue)
{
    uint8_t rgb[3 * 16], mask[16];

    for (int i = 0; i < 16; i++)
        memset(rgb + 3 * i, 16 * i, 3);
    tissue_mask_make(rgb, 16, mask);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(mask[i], 0);
}
END_TEST

START_TEST(a_mask_without_targets_has_no_area_and_no_curve)
{
    const uint8_t mask[12] = { 0 };
    const int64_t extent[2] = { 3, 4 };
    const target_rule rule = { { 1, 1 }, 75, 200 };
    map_peak item[] = { { 5, 0.75f } };
    const peak_list found = { 1, item };
    pons_error err = PONS_ERROR_INIT;
    froc_sums s = { 0 };
    froc_curve c;
    target_areas t;

    ck_assert_int_eq(target_areas_find(mask, extent, &rule, &t, &err), PONS_OK);
    ck_assert_int_eq(t.count, 0);
    ck_assert_int_eq(froc_add(&s, &t, &found, &err), PONS_OK);
    ck_assert_int_eq(s.miss_count, 1);
    ck_assert_int_eq(froc_curve_make(&s, &c, &err), PONS_DATA);
    ck_assert_str_eq(err.text, "froc: none of 1 images has a target");
    froc_curve_clear(&c);
    froc_sums_clear(&s);
    target_areas_clear(&t);
}
END_TEST

START_TEST(a_map_with_a_value_that_is_no_number_is_refused)
{
    const float map[4] = { 0.75f, 0.25f, NAN, 0.5f };
    const int64_t extent[2] = { 2, 2 };
    pons_error err = PONS_ERROR_INIT;
    peak_list found;

    ck_assert_int_eq(map_peaks_find(map, extent, 0.25f, 1, &found, &err), PONS_DATA);
    ck_assert_str_eq(err.text, "value 2 of the map is NaN, expected a probability");
    peak_list_clear(&found);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("froc");

    tcase_add_test(c, curves_and_scores_are_those_of_monai);
    tcase_add_test(c, detections_and_targets_are_those_of_monai);
    tcase_add_test(c, tissue_is_that_of_monai);
    tcase_add_test(c, a_grey_slide_has_no_tissue);
    tcase_add_test(c, a_mask_without_targets_has_no_area_and_no_curve);
    tcase_add_test(c, a_map_with_a_value_that_is_no_number_is_refused);
    tcase_add_checked_fixture(c, make_root, remove_root);
    if (!suite_has("maps of slides", build_feature_missing("", "libtiff") == NULL, "libtiff"))
        return suite_run();
    tcase_add_test(c, a_map_of_several_classes_is_read_as_it_was_written);
    tcase_add_test(c, more_classes_than_samples_of_a_file_are_refused);
    tcase_add_test(c, damaged_maps_are_refused_in_one_line);
    tcase_add_test(c, a_dropped_map_leaves_no_file);
    return suite_run();
}
