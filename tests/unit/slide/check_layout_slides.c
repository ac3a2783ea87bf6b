/*
 * check_layout_slides.c - patches of whole-slide images: their pixels and classes are those of the
 * list, lists that do not fit the slides are refused, and threads share the open slides.
 */
#include "support/data/golden_arrays.h"
#include "support/data/slide_maker.h"
#include "support/dataset_maker.h"
#include "support/nifti_maker.h"
#include "support/root.h"

#include "base/build_feature.h"
#include "data/case/case_read.h"
#include "data/cache/case_hash.h"
#include "data/check/dataset_check.h"

#include <pthread.h>
#include <string.h>

static const slide_box boxes[] = {
    { 40, 30, 300, 400, { 220, 120, 190 } },
    { 100, 100, 120, 150, { 90, 50, 140 } },
};
static const slide_plan plan = { 400, 500, 64, 2, boxes, 2 };

static void make_slides(void)
{
    make_root();
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d.tif", i);
        slide_make(in_root(name), &plan);
    }
}

static dataset_settings usual(void)
{
    return (dataset_settings){
        .layout = "slides", .source = in_root("list.csv"), .target = TARGET_OF_CASE,
        .slide = { .files = in_root("*.tif"), .extent = 16, .grid = 1 }
    };
}

static dataset *open_list(const dataset_settings *s, const char *text)
{
    write_text("list.csv", text);
    return maker_open(s);
}

static const data_case *case_named(const dataset *d, const char *id)
{
    for (int i = 0; i < d->case_count; i++)
        if (strcmp(d->cases[i].id, id) == 0)
            return &d->cases[i];
    ck_abort_msg("no case '%s'; the first is '%s'", id, d->cases[0].id);
}

/* The patch of a case begins at this pixel of its level. */
static void expect_patch(const dataset *d, const char *id, int level, int64_t row, int64_t column)
{
    const data_case *info = case_named(d, id);
    const float *found;
    uint8_t expected[3];
    pons_case c;

    MUST(case_read(d, info->rank, &c, &error));
    ck_assert_int_eq(c.image.channels, 3);
    ck_assert_int_eq(c.image.extent[0], 1);
    ck_assert_int_eq(c.image.extent[1], 16);
    ck_assert_int_eq(c.image.extent[2], 16);
    found = c.image.voxels;
    for (int n = 0; n < 256; n++) {
        slide_plan_pixel(&plan, level, row + n / 16, column + n % 16, expected);
        for (int k = 0; k < 3; k++)
            ck_assert_msg(found[3 * n + k] == (float)expected[k], "%s: pixel %d is %g, expected %d",
                          id, n, (double)found[3 * n + k], expected[k]);
    }
    case_clear(&c);
}

static const char *class_of(const dataset *d, const char *id)
{
    return d->classes[case_named(d, id)->class_index].name;
}

/* ---- patches --------------------------------------------------------------------------------- */

START_TEST(a_patch_lies_around_its_position)
{
    dataset_settings s = usual();
    dataset *d = open_list(&s, "s0,110,108,1\ns1,40,50,0\ns0,200,150,0\n");

    ck_assert_int_eq(d->case_count, 3);
    ck_assert_int_eq(d->channels, 3);
    expect_patch(d, "s0_110_108", 0, 100, 102);
    expect_patch(d, "s1_40_50", 0, 42, 32);
    ck_assert_str_eq(class_of(d, "s0_110_108"), "1");
    ck_assert_str_eq(class_of(d, "s0_200_150"), "0");
    dataset_close(d);
    s.slide.corner = true;
    d = open_list(&s, "s0,110,108,1\ns1,40,50,0\n");
    expect_patch(d, "s0_110_108", 0, 108, 110);
    dataset_close(d);
    s.slide = (slide_settings){ .files = s.slide.files, .extent = 16, .grid = 1,
                                .level = 1 };
    d = open_list(&s, "s0,110,108,1\ns1,40,50,0\n");
    expect_patch(d, "s0_110_108", 1, 46, 47);
    dataset_close(d);
}
END_TEST

/* As MONAI's GridSplit: (64 - 16) / 2 = 24 pixels from patch to patch. */
START_TEST(a_grid_has_a_label_for_each_patch_column_by_column)
{
    dataset_settings s = usual();
    dataset *d;

    s.slide.grid = 3;
    s.slide.region = 64;
    d = open_list(&s, "s0,132,140,0,1,0,0,0,0,1,0,0\n");
    ck_assert_int_eq(d->case_count, 9);
    for (int down = 0; down < 3; down++)
        for (int across = 0; across < 3; across++) {
            char id[32];
            snprintf(id, sizeof id, "s0_132_140_%d%d", down, across);
            expect_patch(d, id, 0, 108 + 24 * down, 100 + 24 * across);
            ck_assert_str_eq(class_of(d, id), (down == 1 && across == 0)
                                              || (down == 0 && across == 2) ? "1" : "0");
        }
    dataset_close(d);
}
END_TEST

START_TEST(a_list_may_name_its_columns_and_have_paths)
{
    dataset_settings s = usual();
    dataset *d;

    s.slide.files = NULL;
    d = open_list(&s, "label,y,x,slide\ntumor,108,110,s0.tif\nnormal,50,40,./s1.tif\n");
    expect_patch(d, "s0_110_108", 0, 100, 102);
    ck_assert_str_eq(class_of(d, "s0_110_108"), "tumor");
    dataset_close(d);
}
END_TEST

START_TEST(a_second_list_is_that_of_validation)
{
    dataset_settings s = usual();
    dataset *d;

    write_text("val.csv", "s2,60,60,1\ns2,80,60,0\n");
    s.slide.validation = in_root("val.csv");
    d = open_list(&s, "s0,110,108,1\ns1,40,50,0\n");
    ck_assert_int_eq(d->training_count, 2);
    ck_assert_int_eq(d->validation_count, 2);
    ck_assert_str_eq(d->cases[d->validation[0]].id, "s2_60_60");
    dataset_close(d);
    s.validation = "none";
    d = open_list(&s, "s0,110,108,1\ns1,40,50,0\n");
    ck_assert_int_eq(d->training_count, 4);
    dataset_close(d);
}
END_TEST

/* A patch beyond the border shows the background there. */
START_TEST(a_patch_may_reach_over_the_border)
{
    dataset_settings s = usual();
    dataset *d = open_list(&s, "s0,2,108,1\ns1,499,399,0\n");

    expect_patch(d, "s0_2_108", 0, 100, -6);
    expect_patch(d, "s1_499_399", 0, 391, 491);
    dataset_close(d);
}
END_TEST

START_TEST(patches_are_checked_and_hashed_by_their_pixels)
{
    dataset_settings s = usual();
    dataset *d = open_list(&s, "s0,110,108,1\ns1,110,108,0\ns0,150,150,0\n");
    dataset_report *report;
    hash128 hash[3];

    for (int i = 0; i < 3; i++)
        MUST(case_hash(&d->cases[i], &hash[i], &error));
    ck_assert_mem_eq(&hash[0], &hash[2], sizeof *hash);
    ck_assert_int_ne(memcmp(&hash[0], &hash[1], sizeof *hash), 0);
    MUST(dataset_check(d, NULL, &report, &error));
    ck_assert_int_eq(report->error_count, 0);
    ck_assert_int_eq(report->facts[0].extent[1], 16);
    dataset_report_free(report);
    dataset_close(d);
}
END_TEST

static void *read_cases(void *data)
{
    const dataset *d = data;

    for (int round = 0; round < 10; round++)
        for (int i = 0; i < d->case_count; i++) {
            pons_error err = PONS_ERROR_INIT;
            pons_case c;
            if (case_read(d, i, &c, &err) != PONS_OK)
                return "a case is refused";
            case_clear(&c);
        }
    return NULL;
}

START_TEST(threads_share_fewer_open_slides_than_there_are)
{
    dataset_settings s = usual();
    pthread_t thread[4];
    dataset *d;

    s.slide.open = 1;
    d = open_list(&s, "s0,110,108,1\ns1,40,50,0\ns2,60,60,1\n");
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_cases, d), 0);
    for (int i = 0; i < 4; i++) {
        void *problem;
        pthread_join(thread[i], &problem);
        ck_assert_msg(problem == NULL, "%s", (char *)problem);
    }
    expect_patch(d, "s0_110_108", 0, 100, 102);
    dataset_close(d);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

static void expect_refusal(const dataset_settings *s, const char *text, pons_status status,
                           const char *words)
{
    write_text("list.csv", text);
    maker_refused(s, status, words);
}

START_TEST(a_row_that_does_not_fit_is_named)
{
    static const struct { const char *row, *words; } wrong[] = {
        { "s9,10,10,1", "row 2: cannot read '" },
        { "s9,10,10,1", "s9.tif': No such file or directory" },
        { "s0,500,10,1", "row 2, column 2: found '500', expected 0 to 499, a column of the slide" },
        { "s0,-1,10,1", "found '-1', expected 0 to 499" },
        { "s0,10,400,1", "row 2, column 3: found '400', expected 0 to 399, a row of the slide" },
        { "s0,10,1e2,1", "found '1e2', expected 0 to 399" },
        { "s0,10,10,", "column 4: found '', expected a class" },
        { ",10,10,1", "column 1: found '', expected a slide" },
        { "s0,10,10", "row 2 has 3 cells, expected 4 as in row 1" },
        { "s0,20,20,1", "row 2: image '" },
        { "cut,20,20,1", "row 2: cannot read '" },
    };
    dataset_settings s = usual();
    char text[128];

    maker_write(in_root("cut.tif"), "II*\0\10\0\0\0\1\0", 10);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "s0,20,20,0\n%s\ns1,20,20,1\n", wrong[i].row);
        expect_refusal(&s, text, PONS_DATA, wrong[i].words);
    }
}
END_TEST

START_TEST(a_label_that_is_no_class_is_named)
{
    static const char *const labels[] = { "normal:0", "tumor:1" };
    dataset_settings s = usual();

    s.labels = (pons_texts){ 2, labels };
    expect_refusal(&s, "s0,20,20,0\ns1,20,20,2\n", PONS_DATA,
                   "row 2, column 4 has the class '2', expected 'normal', 'tumor'");
}
END_TEST

START_TEST(a_list_without_a_column_is_refused)
{
    dataset_settings s = usual();

    expect_refusal(&s, "slide,x,label\ns0,1,1\n", PONS_DATA,
                   "the columns are 'slide', 'x', 'label', expected 'slide', 'x', 'y' and 'label'");
    expect_refusal(&s, "s0,1,1\n", PONS_DATA, "expected 'slide', 'x', 'y' and 'label'");
    expect_refusal(&s, "", PONS_DATA, "is empty, expected a row for each patch");
    s.slide.grid = 3;
    expect_refusal(&s, "s0,1,1,1\n", PONS_DATA, "9 labels, one for each patch of 'slide_grid'");
}
END_TEST

START_TEST(options_that_do_not_fit_are_refused)
{
    static const char list[] = "s0,20,20,0\ns1,20,20,1\n";
    dataset_settings s = usual();

    s.slide.level = 2;
    expect_refusal(&s, list, PONS_DATA, "has 2 levels, but 'slide_level' is 2");
    s = usual();
    s.slide.files = in_root("s0.tif");
    expect_refusal(&s, list, PONS_CONFIG, "expected one * in it");
    s = usual();
    s.slide.region = 32;
    expect_refusal(&s, list, PONS_CONFIG, "'slide_region' is 32, but 'slide_grid' is 1");
    s.slide.grid = 2;
    s.slide.region = 8;
    expect_refusal(&s, list, PONS_CONFIG, "expected at least 'slide_patch', 16");
    s = usual();
    s.layout = "csv";
    expect_refusal(&s, list, PONS_CONFIG, "'slides' is given for the layout 'csv'");
    s.slide = (slide_settings){ .extent = 16 };
    expect_refusal(&s, list, PONS_CONFIG, "'slide_patch' is given for the layout 'csv'");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("layout_slides");

    if (build_feature_missing("", "openslide") != NULL)
        return suite_skip("check_layout_slides", "openslide");
    tcase_add_checked_fixture(c, make_slides, remove_root);
    tcase_add_test(c, a_patch_lies_around_its_position);
    tcase_add_test(c, a_grid_has_a_label_for_each_patch_column_by_column);
    tcase_add_test(c, a_list_may_name_its_columns_and_have_paths);
    tcase_add_test(c, a_second_list_is_that_of_validation);
    tcase_add_test(c, a_patch_may_reach_over_the_border);
    tcase_add_test(c, patches_are_checked_and_hashed_by_their_pixels);
    tcase_add_test(c, threads_share_fewer_open_slides_than_there_are);
    tcase_add_test(c, a_row_that_does_not_fit_is_named);
    tcase_add_test(c, a_label_that_is_no_class_is_named);
    tcase_add_test(c, a_list_without_a_column_is_refused);
    tcase_add_test(c, options_that_do_not_fit_are_refused);
    return suite_run();
}
