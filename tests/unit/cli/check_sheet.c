/*
 * check_sheet.c - sheets of volumes: true proportions, the largest labelled sections, colours.
 */
#include "support/suite.h"

#include "base/file/file.h"
#include "report/picture/class_marks.h"
#include "report/picture/png_write.h"
#include "report/picture/sheet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct drawn {
    char *bytes;
    size_t size;
} drawn;

static volume make_volume(pons_type type, int channels, int64_t d, int64_t h, int64_t w)
{
    pons_error err = PONS_ERROR_INIT;
    volume v;

    ck_assert(!pons_volume_init(&v, type, channels, (int64_t[]){ d, h, w }, &err));
    return v;
}

static drawn draw_sheet(const sheet_item *item, int count, int per_row)
{
    char path[] = "/tmp/pons-sheet-XXXXXX";
    pons_error err = PONS_ERROR_INIT;
    drawn d;

    close(mkstemp(path));
    ck_assert_msg(!sheet_write(path, item, count, per_row, 100, &err), "%s", err.text);
    ck_assert(!file_read(path, 1 << 24, &d.bytes, &d.size, PONS_DATA, &err));
    unlink(path);
    return d;
}

/* Width and height in the header of a PNG. */
static void expect_extent(drawn d, uint32_t width, uint32_t height)
{
    const unsigned char *b = (const unsigned char *)d.bytes;

    ck_assert_uint_gt(d.size, 24);
    ck_assert_uint_eq((uint32_t)b[18] << 8 | b[19], width);
    ck_assert_uint_eq((uint32_t)b[22] << 8 | b[23], height);
}

static bool drawings_are_equal(drawn a, drawn b)
{
    return a.size == b.size && !memcmp(a.bytes, b.bytes, a.size);
}

START_TEST(slices_have_the_proportions_of_the_spacing)
{
    volume image = make_volume(PONS_F32, 2, 24, 32, 16), none = { .type = PONS_U8 };
    const sheet_item item[3] = { { &image, &none, 0 }, { &image, &none, 1 }, { &image, &none, 0 } };
    drawn d;

    image.affine[2][2] = 2; /* 24 x 32 x 32 mm */
    d = draw_sheet(item, 2, 1);
    expect_extent(d, 100 + 4 + 75 + 4 + 75, 100 + 8 + 100);
    free(d.bytes);
    d = draw_sheet(item, 3, 2);
    expect_extent(d, 258 + 8 + 258, 208);
    free(d.bytes);
    pons_volume_clear(&image);
}
END_TEST

START_TEST(a_volume_of_one_slice_has_that_slice_alone)
{
    volume image = make_volume(PONS_F32, 1, 1, 20, 10), none = { .type = PONS_U8 };
    drawn d = draw_sheet(&(sheet_item){ &image, &none, 0 }, 1, 1);

    expect_extent(d, 100, 50);
    free(d.bytes);
    pons_volume_clear(&image);
}
END_TEST

/* Label a square of side 'side' in slice k, from (first, first) on. */
static void label_square(volume *label, int64_t first, int64_t side, int64_t k, uint8_t value)
{
    for (int64_t i = first; i < first + side; i++)
        for (int64_t j = first; j < first + side; j++)
            ((uint8_t *)label->voxels)[(i * label->extent[1] + j) * label->extent[2] + k] = value;
}

START_TEST(slices_go_through_the_largest_labelled_section)
{
    volume image = make_volume(PONS_F32, 1, 24, 24, 16);
    volume label = make_volume(PONS_U8, 1, 24, 24, 16);
    const sheet_item item = { &image, &label, 0 };
    drawn d[3];

    label_square(&label, 2, 8, 4, 1);
    d[0] = draw_sheet(&item, 1, 1);
    label_square(&label, 14, 2, 10, 1);
    d[1] = draw_sheet(&item, 1, 1);
    label_square(&label, 12, 9, 10, 1);
    d[2] = draw_sheet(&item, 1, 1);
    ck_assert(drawings_are_equal(d[0], d[1]));
    ck_assert(!drawings_are_equal(d[0], d[2]));
    for (int i = 0; i < 3; i++)
        free(d[i].bytes);
    pons_volume_clear(&image);
    pons_volume_clear(&label);
}
END_TEST

START_TEST(classes_have_colours_of_their_own)
{
    volume image = make_volume(PONS_F32, 1, 24, 24, 16);
    volume label = make_volume(PONS_U8, 1, 24, 24, 16);
    const sheet_item item = { &image, &label, 0 };
    drawn d[3];

    for (int i = 0; i < 3; i++) {
        label_square(&label, 2, 8, 4, (uint8_t)i);
        d[i] = draw_sheet(&item, 1, 1);
    }
    for (int i = 0; i < 3; i++)
        ck_assert(!drawings_are_equal(d[i], d[(i + 1) % 3]));
    for (int i = 0; i < 3; i++)
        free(d[i].bytes);
    ck_assert_str_ne(mark_class_color_name(0), mark_class_color_name(1));
    pons_volume_clear(&image);
    pons_volume_clear(&label);
}
END_TEST

START_TEST(without_libpng_a_sheet_is_refused)
{
    volume image = make_volume(PONS_F32, 1, 4, 4, 4), none = { .type = PONS_U8 };
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(sheet_write("/tmp/pons-never.png", &(sheet_item){ &image, &none, 0 }, 1, 1,
                                 10, &err), PONS_CONFIG);
    pons_volume_clear(&image);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("sheet");

    if (!png_available()) {
        tcase_add_test(c, without_libpng_a_sheet_is_refused);
        return suite_run();
    }
    tcase_add_test(c, slices_have_the_proportions_of_the_spacing);
    tcase_add_test(c, a_volume_of_one_slice_has_that_slice_alone);
    tcase_add_test(c, slices_go_through_the_largest_labelled_section);
    tcase_add_test(c, classes_have_colours_of_their_own);
    return suite_run();
}
