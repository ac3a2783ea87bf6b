/*
 * check_slide.c - regions of whole-slide images hold the pixels that were written, at every level
 * and beyond the border, and damaged files are refused in one line.
 */
#include "support/data/golden_arrays.h"
#include "support/data/slide_maker.h"
#include "support/nifti_maker.h"
#include "support/root.h"
#include "support/suite.h"

#include "base/build_feature.h"
#include "base/file/file.h"
#include "data/slide/slide_patch.h"
#include "data/slide/slide_thumbnail.h"
#include "infer/heat_map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const slide_box boxes[] = {
    { 100, 40, 130, 300, { 220, 120, 190 } },
    { 150, 60, 40, 50, { 90, 50, 140 } },
};
static const slide_plan small = { 300, 400, 64, 3, boxes, 2 };

static slide *open_small(void)
{
    slide *s;

    slide_make(in_root("small.tif"), &small);
    MUST(slide_open(in_root("small.tif"), &s, &error));
    return s;
}

static pons_status open_status(const char *path, pons_error *err)
{
    slide *s;
    pons_status status = slide_open(path, &s, err);

    if (status == PONS_OK)
        slide_close(s);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void expect_region(slide *s, const slide_region *r)
{
    uint8_t *rgb = malloc((size_t)(r->rows * r->columns) * 3), expected[3];
    int scale = 1 << r->level;

    ck_assert_ptr_nonnull(rgb);
    MUST(slide_read(s, r, rgb, &error));
    for (int64_t row = 0; row < r->rows; row++)
        for (int64_t column = 0; column < r->columns; column++) {
            const uint8_t *found = rgb + (row * r->columns + column) * 3;
            slide_plan_pixel(&small, r->level, r->row / scale + row, r->column / scale + column,
                             expected);
            ck_assert_msg(memcmp(found, expected, 3) == 0, "level %d, row %d, column %d: %d %d %d, "
                          "expected %d %d %d", r->level, (int)row, (int)column, found[0], found[1],
                          found[2], expected[0], expected[1], expected[2]);
        }
    free(rgb);
}

START_TEST(a_region_of_each_level_holds_what_was_written)
{
    static const slide_region region[] = {
        { 0, 0, 0, 300, 400 }, { 0, 93, 38, 70, 90 }, { 0, -20, -30, 60, 70 },
        { 0, 280, 390, 40, 30 }, { 1, 96, 40, 60, 70 }, { 2, 0, 0, 75, 100 },
    };
    slide *s = open_small();

    for (size_t i = 0; i < sizeof region / sizeof *region; i++)
        expect_region(s, &region[i]);
    slide_close(s);
}
END_TEST

START_TEST(levels_have_their_extents_and_scales)
{
    slide *s = open_small();
    double micrometres[2];

    ck_assert_int_eq(slide_level_count(s), 3);
    for (int level = 0; level < 3; level++) {
        const slide_level *l = slide_level_at(s, level);
        ck_assert_int_eq(l->rows, 300 >> level);
        ck_assert_int_eq(l->columns, 400 >> level);
        ck_assert(l->downsample == 1 << level);
        ck_assert_int_eq(slide_level_for(s, 1 << level), level);
        ck_assert_int_eq(slide_level_for(s, (1 << level) + 0.9), level);
    }
    ck_assert_int_eq(slide_level_for(s, 0.5), 0);
    ck_assert_int_eq(slide_level_for(s, 1000), 2);
    ck_assert_str_eq(slide_path(s), in_root("small.tif"));
    slide_resolution(s, micrometres);
    ck_assert(micrometres[0] == 0 && micrometres[1] == 0);
    slide_close(s);
}
END_TEST

/* Level 2 has fewer rows or columns than a tile has, so the thumbnail comes from level 1. */
static void expect_level_1(const slide_plan *plan, const char *words)
{
    pons_error err = PONS_ERROR_INIT;
    uint8_t expected[3], rgb[3];
    slide_thumbnail t;
    slide *s;

    slide_make(in_root("low.tif"), plan);
    MUST(slide_open(in_root("low.tif"), &s, &error));
    ck_assert_int_eq(slide_level_for(s, 4), 1);
    ck_assert_int_eq(slide_read(s, &(slide_region){ 2, 0, 0, 1, 1 }, rgb, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
    MUST(slide_thumbnail_make(s, &t, &error));
    ck_assert(t.step == 2);
    for (int64_t row = 0; row < t.rows; row++)
        for (int64_t column = 0; column < t.columns; column++) {
            slide_plan_pixel(plan, 1, row, column, expected);
            ck_assert_mem_eq(t.rgb + (row * t.columns + column) * 3, expected, 3);
        }
    slide_thumbnail_clear(&t);
    slide_close(s);
}

START_TEST(a_level_that_is_smaller_than_a_tile_is_passed_over)
{
    static const slide_box tissue[] = { { 0, 0, 900, 900, { 200, 100, 160 } } };

    expect_level_1(&(slide_plan){ 1000, 4096, 256, 3, tissue, 1 },
                   "level 2 has 1024 x 250 pixels, expected at least the 256 x 256 of a tile");
    expect_level_1(&(slide_plan){ 4096, 1000, 256, 3, tissue, 1 }, "level 2 has 250 x 1024 pixels");
}
END_TEST

START_TEST(a_slide_of_one_level_that_is_smaller_than_a_tile_is_refused)
{
    pons_error err = PONS_ERROR_INIT;
    slide_thumbnail t;
    slide *s;

    slide_make(in_root("low.tif"), &(slide_plan){ 100, 200, 256, 1, NULL, 0 });
    MUST(slide_open(in_root("low.tif"), &s, &error));
    ck_assert_int_eq(slide_thumbnail_make(s, &t, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "level 0 has 200 x 100 pixels, expected at least") != NULL, "%s",
                  err.text);
    slide_thumbnail_clear(&t);
    slide_close(s);
}
END_TEST

static void *read_all(void *opened)
{
    for (int row = 0; row < 300; row += 50)
        for (int column = 0; column < 400; column += 50)
            expect_region(opened, &(slide_region){ 0, row, column, 64, 64 });
    return NULL;
}

START_TEST(threads_read_one_slide_at_the_same_time)
{
    slide *s = open_small();
    pthread_t thread[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_all, s), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    slide_close(s);
}
END_TEST

START_TEST(a_giant_slide_needs_little_of_the_disk)
{
    static const slide_box tissue[] = { { 50000, 70000, 300, 400, { 200, 100, 160 } } };
    const slide_plan plan = { 100000, 100000, 512, 8, tissue, 1 };
    uint8_t rgb[64 * 64 * 3], expected[3];
    struct stat file;
    slide *s;

    slide_make(in_root("giant.tif"), &plan);
    ck_assert_int_eq(stat(in_root("giant.tif"), &file), 0);
    ck_assert_int_lt(file.st_size, 32 << 20);
    MUST(slide_open(in_root("giant.tif"), &s, &error));
    ck_assert_int_eq(slide_level_at(s, 0)->columns, 100000);
    MUST(slide_read(s, &(slide_region){ 0, 50000, 70000, 64, 64 }, rgb, &error));
    slide_plan_pixel(&plan, 0, 50063, 70063, expected);
    ck_assert_mem_eq(rgb + (63 * 64 + 63) * 3, expected, 3);
    slide_close(s);
}
END_TEST

/* Two overlapping points, in both orders, and the larger one alone. */
START_TEST(overlapping_points_of_a_heat_map_do_not_add_up)
{
    static const double first[2] = { 0, 0 }, end[2] = { 1, 2 };
    static const float order[3][2] = { { 0.25f, 0.75f }, { 0.75f, 0.25f }, { 0.75f, 0.75f } };
    uint8_t rgb[3][2 * 3];

    for (int i = 0; i < 3; i++) {
        float largest[2] = { 0 };
        heat_map m = { 1, 2, largest };
        memset(rgb[i], 200, sizeof rgb[i]);
        for (int k = 0; k < 2; k++)
            heat_map_put(&m, first, end, order[i][k]);
        heat_map_blend(&m, rgb[i]);
        ck_assert_mem_eq(rgb[i], rgb[0], sizeof rgb[i]);
    }
    ck_assert_int_lt(rgb[0][2], 200);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

/* The bytes of small.tif, with 'size' bytes at 'at' replaced, in a file of 'length' bytes. */
static void spoil_small(const char *name, size_t length, size_t at, const void *with, size_t size)
{
    char *data;
    size_t total;

    slide_make(in_root("small.tif"), &small);
    MUST(file_read(in_root("small.tif"), 1 << 28, &data, &total, PONS_DATA, &error));
    ck_assert(at + size <= total);
    memcpy(data + at, with, size);
    maker_write(in_root(name), data, length < total ? length : total);
    free(data);
}

static void expect_refusal(const char *name, const char *words)
{
    const char *path = in_root(name);
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(open_status(path, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, path) != NULL && strstr(err.text, words) != NULL, "%s",
                  err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}

START_TEST(files_that_are_no_slides_are_refused)
{
    maker_write(in_root("text.tif"), "no picture", 10);
    maker_write(in_root("empty.tif"), "", 0);
    spoil_small("head.tif", 100, 0, "I", 1);
    expect_refusal("missing.tif", "No such file");
    expect_refusal("text.tif", "expected a whole-slide image");
    expect_refusal("empty.tif", "expected a whole-slide image");
    expect_refusal("head.tif", "expected a whole-slide image");
    expect_refusal(".", "cannot read");
}
END_TEST

START_TEST(a_slide_that_is_cut_off_is_refused)
{
    spoil_small("cut.tif", 60000, 0, "I", 1);
    expect_refusal("cut.tif", "OpenSlide");
}
END_TEST

/* The offset of tile 18 of level 0, which begins at row 128 and column 256. */
START_TEST(a_damaged_tile_is_refused_where_it_is_read)
{
    static const unsigned char beyond[] = { 0, 0, 0, 0x7f };
    pons_error err = PONS_ERROR_INIT;
    uint8_t rgb[32 * 32 * 3];
    slide *s;

    spoil_small("damaged.tif", SIZE_MAX, 178 + 4 * 18, beyond, 4);
    MUST(slide_open(in_root("damaged.tif"), &s, &error));
    MUST(slide_read(s, &(slide_region){ 0, 0, 0, 32, 32 }, rgb, &error));
    ck_assert_int_eq(slide_read(s, &(slide_region){ 0, 140, 300, 32, 32 }, rgb, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "damaged.tif") != NULL
                  && strstr(err.text, "column 300, row 140 of level 0") != NULL, "%s", err.text);
    slide_close(s);
}
END_TEST

static void *read_both(void *pool)
{
    const slide_patch damaged = { pool, 0, { 0, 140, 300, 32, 32 } };
    const slide_patch sound = { pool, 0, { 0, 0, 0, 32, 32 } };

    for (int i = 0; i < 20; i++) {
        pons_error err = PONS_ERROR_INIT;
        hash128 hash;

        ck_assert_int_eq(slide_patch_hash(&damaged, &hash, &err), PONS_DATA);
        ck_assert_msg(strstr(err.text, "column 300, row 140") != NULL, "%s", err.text);
        err = (pons_error)PONS_ERROR_INIT;
        ck_assert_msg(slide_patch_hash(&sound, &hash, &err) == PONS_OK, "%s", err.text);
    }
    return NULL;
}

START_TEST(a_damaged_patch_leaves_the_others_of_its_slide_readable)
{
    static const unsigned char beyond[] = { 0, 0, 0, 0x7f };
    slide_pool *pool = slide_pool_new(1);
    pthread_t thread[4];

    spoil_small("damaged.tif", SIZE_MAX, 178 + 4 * 18, beyond, 4);
    ck_assert_int_eq(slide_pool_add(pool, in_root("damaged.tif")), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_both, pool), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    slide_pool_free(pool);
}
END_TEST

/* The tags ImageWidth and TileWidth of level 0: the value of tag n lies at 10 + 12 n + 8. */
START_TEST(bombs_are_refused_by_their_extent)
{
    static const unsigned char wide[] = { 0, 0, 0, 2 }, tile[] = { 0, 0, 0, 1 };

    spoil_small("wide.tif", SIZE_MAX, 10 + 12 * 1 + 8, wide, 4);
    expect_refusal("wide.tif", "cannot read");
    spoil_small("tile.tif", SIZE_MAX, 10 + 12 * 8 + 8, tile, 4);
    expect_refusal("tile.tif", "cannot read");
}
END_TEST

START_TEST(regions_without_bounds_are_refused)
{
    static const slide_region region[] = {
        { 0, 0, 0, 0, 10 }, { 0, 0, 0, 10, -1 }, { 0, 0, 0, INT64_MAX / 2, 10 },
    };
    slide *s = open_small();

    for (size_t i = 0; i < sizeof region / sizeof *region; i++) {
        pons_error err = PONS_ERROR_INIT;
        ck_assert_int_eq(slide_read(s, &region[i], NULL, &err), PONS_CONFIG);
    }
    slide_close(s);
}
END_TEST

START_TEST(a_build_without_openslide_says_so)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(open_status(in_root("small.tif"), &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "need OpenSlide") != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("slide");

    tcase_add_checked_fixture(c, make_root, remove_root);
    if (!suite_has("regions of slides", build_feature_missing("", "openslide") == NULL,
                   "openslide")) {
        tcase_add_test(c, a_build_without_openslide_says_so);
        return suite_run();
    }
    tcase_add_test(c, a_region_of_each_level_holds_what_was_written);
    tcase_add_test(c, levels_have_their_extents_and_scales);
    tcase_add_test(c, a_level_that_is_smaller_than_a_tile_is_passed_over);
    tcase_add_test(c, a_slide_of_one_level_that_is_smaller_than_a_tile_is_refused);
    tcase_add_test(c, threads_read_one_slide_at_the_same_time);
    tcase_add_test(c, a_giant_slide_needs_little_of_the_disk);
    tcase_add_test(c, overlapping_points_of_a_heat_map_do_not_add_up);
    tcase_add_test(c, files_that_are_no_slides_are_refused);
    tcase_add_test(c, a_slide_that_is_cut_off_is_refused);
    tcase_add_test(c, a_damaged_tile_is_refused_where_it_is_read);
    tcase_add_test(c, a_damaged_patch_leaves_the_others_of_its_slide_readable);
    tcase_add_test(c, bombs_are_refused_by_their_extent);
    tcase_add_test(c, regions_without_bounds_are_refused);
    return suite_run();
}
