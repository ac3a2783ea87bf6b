/*
 * check_overlay.c - an overlay has true proportions, the classes and errors of its slices in their
 * colours, and a legend of them; a build without libpng reports that it has no PNG.
 */
#include "support/suite.h"

#include "base/file/file.h"
#include "data/phantom/phantom.h"
#include "report/picture/class_marks.h"
#include "report/picture/overlay.h"
#include "report/picture/png_write.h"

#include <string.h>
#include <unistd.h>

/* Rows of a picture of make_volumes: a caption, panels, a legend of one row, and the same again. */
enum { CAPTION = 24, PANEL = 384, LEGEND = 24, GAP = 4 };

static const int ids[3] = { 1, 2, 3 };
static const data_class classes[3] = { { "brain", 1, &ids[0] }, { "left", 1, &ids[1] },
                                       { "right", 1, &ids[2] } };

typedef struct volumes {
    volume image, label, prediction;
} volumes;

static volumes make_volumes(void)
{
    const phantom_settings s = { 1, { 24, 32, 16 }, 1, 4, 0 };
    pons_error err = PONS_ERROR_INIT;
    volumes v;

    ck_assert(!phantom_make(&s, 0, &v.image, &v.label, &err));
    v.label.affine[2][2] = 2; /* the volume is 24 x 32 x 32 mm */
    ck_assert(!volume_copy(&v.label, &v.prediction, &err));
    return v;
}

static void clear_volumes(volumes *v)
{
    pons_volume_clear(&v->image);
    pons_volume_clear(&v->label);
    pons_volume_clear(&v->prediction);
}

static overlay_case case_of(const volumes *v)
{
    return (overlay_case){ .label = &v->label, .prediction = &v->prediction, .class_count = 3,
                           .classes = classes };
}

static picture draw(const overlay_case *c)
{
    pons_error err = PONS_ERROR_INIT;
    picture p;

    ck_assert_msg(!overlay_draw(c, &p, &err), "%s", err.text);
    return p;
}

/* Count the pixels of a colour in rows 'top' to 'top' + 'rows' - 1. */
static int count_color(picture *p, int top, int rows, const uint8_t color[3])
{
    int count = 0;

    for (int y = top; y < top + rows; y++)
        for (int x = 0; x < p->width; x++)
            count += memcmp(picture_pixel(p, x, y), color, 3) == 0;
    return count;
}

static int count_outline(picture *p, int class)
{
    return count_color(p, CAPTION, PANEL, mark_class_color(class - 1));
}

static int count_error(picture *p, mark_error error)
{
    return count_color(p, CAPTION + PANEL + GAP + LEGEND + GAP, PANEL, mark_error_color(error));
}

static int count_named(picture *p, int class)
{
    return count_color(p, CAPTION + PANEL + GAP, LEGEND, mark_class_color(class - 1));
}

/* Replace a class of a volume. */
static void change_class(volume *v, int from, int to)
{
    for (int64_t n = 0; n < pons_volume_count(v); n++)
        if (((uint8_t *)v->voxels)[n] == from)
            ((uint8_t *)v->voxels)[n] = (uint8_t)to;
}

START_TEST(a_picture_has_three_panels_in_true_proportions)
{
    volumes v = make_volumes();
    overlay_case c = case_of(&v);
    picture p;

    c.image = &v.image;
    p = draw(&c);
    ck_assert_int_eq(p.width, 384 + 4 + 288 + 4 + 288);
    ck_assert_int_eq(p.height, CAPTION + 2 * (PANEL + GAP + LEGEND) + GAP);
    picture_clear(&p);
    clear_volumes(&v);
}
END_TEST

START_TEST(a_class_is_outlined_and_named_in_its_colour)
{
    volumes v = make_volumes();
    overlay_case c = case_of(&v);
    picture p = draw(&c);

    for (int class = 1; class <= 3; class++) {
        ck_assert_int_gt(count_outline(&p, class), 50);
        ck_assert_int_gt(count_named(&p, class), 50);
    }
    picture_clear(&p);
    change_class(&v.label, 3, 2);
    change_class(&v.prediction, 3, 2);
    p = draw(&c);
    ck_assert_int_eq(count_outline(&p, 3), 0);
    ck_assert_int_eq(count_named(&p, 3), 0);
    ck_assert_int_gt(count_named(&p, 2), 50);
    picture_clear(&p);
    clear_volumes(&v);
}
END_TEST

/* A prediction without the label's class 3, and with that class in place of class 2. */
START_TEST(each_kind_of_error_has_its_colour)
{
    volumes v = make_volumes();
    overlay_case c = case_of(&v);
    picture p = draw(&c);

    for (int error = MARK_MISSED; error < MARK_ERROR_COUNT; error++)
        ck_assert_int_eq(count_error(&p, (mark_error)error), 0);
    picture_clear(&p);
    change_class(&v.prediction, 3, 0);
    p = draw(&c);
    ck_assert_int_gt(count_error(&p, MARK_MISSED), 100);
    ck_assert_int_eq(count_error(&p, MARK_FALSE_ALARM), 0);
    picture_clear(&p);
    change_class(&v.label, 3, 0);
    change_class(&v.prediction, 2, 3);
    change_class(&v.prediction, 0, 1);
    p = draw(&c);
    ck_assert_int_eq(count_error(&p, MARK_MISSED), 0);
    ck_assert_int_gt(count_error(&p, MARK_FALSE_ALARM), 100);
    ck_assert_int_gt(count_error(&p, MARK_OTHER_CLASS), 100);
    ck_assert_int_eq(count_outline(&p, 3), 0); /* areas of a prediction are darker */
    ck_assert_int_gt(count_named(&p, 3), 50);
    picture_clear(&p);
    clear_volumes(&v);
}
END_TEST

/* Make two regions: channel c marks the voxels of 'from' with id of[c]; id 0 marks none. */
static volume make_regions(const volume *from, const int of[2])
{
    pons_error err = PONS_ERROR_INIT;
    volume to;

    ck_assert(!pons_volume_init(&to, PONS_U8, 2, from->extent, &err));
    memcpy(to.affine, from->affine, sizeof to.affine);
    for (int64_t n = 0; n < pons_volume_count(from); n++)
        for (int c = 0; c < 2; c++)
            ((uint8_t *)to.voxels)[2 * n + c] = of[c] && ((uint8_t *)from->voxels)[n] == of[c];
    return to;
}

START_TEST(every_region_has_its_outline)
{
    static const int of[3][2] = { { 1, 0 }, { 0, 2 }, { 1, 2 } };
    volumes v = make_volumes();

    for (int n = 0; n < 3; n++) {
        volume label = make_regions(&v.label, of[n]), prediction = make_regions(&v.prediction,
                                                                                 of[n]);
        const overlay_case c = { &label, &prediction, NULL, 2, classes };
        picture p = draw(&c);

        ck_assert_int_eq(count_outline(&p, 1) > 50, of[n][0] > 0);
        ck_assert_int_eq(count_outline(&p, 2) > 50, of[n][1] > 0);
        ck_assert_int_eq(count_error(&p, MARK_MISSED), 0);
        picture_clear(&p);
        pons_volume_clear(&label);
        pons_volume_clear(&prediction);
    }
    clear_volumes(&v);
}
END_TEST

START_TEST(the_label_alone_chooses_the_slices)
{
    volumes v = make_volumes();
    overlay_case c = case_of(&v);
    picture p[2];

    p[0] = draw(&c);
    ((uint8_t *)v.prediction.voxels)[0] = 1; /* a corner, which no such slice shows */
    p[1] = draw(&c);
    ck_assert_int_eq(p[0].height, p[1].height);
    ck_assert(!memcmp(p[0].pixels, p[1].pixels,
                      (size_t)p[0].width * (size_t)p[0].height * 3));
    picture_clear(&p[0]);
    picture_clear(&p[1]);
    clear_volumes(&v);
}
END_TEST

START_TEST(volumes_of_other_extents_are_refused)
{
    static const int64_t extent[3] = { 24, 32, 17 };
    pons_error err = PONS_ERROR_INIT;
    volumes v = make_volumes();
    overlay_case c = case_of(&v);
    volume other;
    picture p;

    ck_assert(!pons_volume_init(&other, PONS_U8, 1, extent, &err));
    c.prediction = &other;
    ck_assert_int_eq(overlay_draw(&c, &p, &err), PONS_DATA);
    pons_volume_clear(&other);
    clear_volumes(&v);
}
END_TEST

START_TEST(a_file_needs_libpng)
{
    char path[] = "/tmp/pons-overlay-XXXXXX", head[8] = "";
    pons_error err = PONS_ERROR_INIT;
    volumes v = make_volumes();
    overlay_case c = case_of(&v);
    FILE *f;

    close(mkstemp(path));
    if (png_available()) {
        ck_assert_msg(!overlay_write(path, &c, &err), "%s", err.text);
        f = fopen(path, "rb");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fread(head, 1, sizeof head, f), sizeof head);
        ck_assert(!memcmp(head, "\x89PNG\r\n\x1a\n", sizeof head));
        fclose(f);
    } else {
        ck_assert_int_eq(overlay_write(path, &c, &err), PONS_CONFIG);
        ck_assert_str_eq(err.text, "'--overlay' needs libpng, which is not in this build");
    }
    unlink(path);
    clear_volumes(&v);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("overlay");

    tcase_add_test(c, a_picture_has_three_panels_in_true_proportions);
    tcase_add_test(c, a_class_is_outlined_and_named_in_its_colour);
    tcase_add_test(c, each_kind_of_error_has_its_colour);
    tcase_add_test(c, every_region_has_its_outline);
    tcase_add_test(c, the_label_alone_chooses_the_slices);
    tcase_add_test(c, volumes_of_other_extents_are_refused);
    tcase_add_test(c, a_file_needs_libpng);
    return suite_run();
}
