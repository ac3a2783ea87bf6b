/*
 * check_overlay.c - the overlay is a PNG in true proportions; a build without libpng reports that.
 */
#include "support/suite.h"

#include "base/file/file.h"
#include "data/phantom/phantom.h"
#include "report/overlay.h"
#include "report/png_write.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint32_t number(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void make_volumes(volume *image, volume *label, volume *prediction)
{
    const phantom_settings s = { 1, { 24, 32, 16 }, 1, 3, 0 };
    pons_error err = PONS_ERROR_INIT;

    ck_assert(!phantom_make(&s, 0, image, label, &err));
    label->affine[2][2] = 2; /* the volume is 24 x 32 x 32 mm */
    ck_assert(!volume_copy(label, prediction, &err));
    for (int64_t n = 0; n < pons_volume_count(prediction) / 2; n++)
        ((uint8_t *)prediction->voxels)[n] = 0;
}

START_TEST(a_picture_has_three_panels_in_true_proportions)
{
    char folder[] = "/tmp/pons-overlay-XXXXXX", path[64];
    unsigned char head[24];
    pons_error err = PONS_ERROR_INIT;
    volume image, label, prediction;
    pons_status status;
    FILE *f;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/o.png", folder);
    make_volumes(&image, &label, &prediction);
    status = overlay_write(path, &label, &prediction, &image, &err);
    if (!png_available()) {
        ck_assert_int_eq(status, PONS_CONFIG);
        ck_assert_str_eq(err.text, "'--overlay' needs libpng, which is not in this build");
    } else {
        ck_assert_msg(!status, "%s", err.text);
        f = fopen(path, "rb");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fread(head, 1, sizeof head, f), sizeof head);
        fclose(f);
        ck_assert(!memcmp(head, "\x89PNG\r\n\x1a\n", 8));
        ck_assert_uint_eq(number(head + 16), 384 + 4 + 288 + 4 + 288);
        ck_assert_uint_eq(number(head + 20), 384);
        ck_assert(!overlay_write(path, &label, &prediction, NULL, &err));
        unlink(path);
    }
    rmdir(folder);
    pons_volume_clear(&image);
    pons_volume_clear(&label);
    pons_volume_clear(&prediction);
}
END_TEST

/* Make two regions: channel c marks the voxels of 'from' with id of[c]; id 0 marks none. */
static void make_regions(const volume *from, const int of[2], volume *to)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert(!pons_volume_init(to, PONS_U8, 2, from->extent, &err));
    memcpy(to->affine, from->affine, sizeof to->affine);
    for (int64_t n = 0; n < pons_volume_count(from); n++)
        for (int c = 0; c < 2; c++)
            ((uint8_t *)to->voxels)[2 * n + c] = of[c] && ((uint8_t *)from->voxels)[n] == of[c];
}

typedef struct drawn {
    char *bytes;
    size_t size;
} drawn;

static drawn draw_overlay(const volume *label, const volume *prediction)
{
    char path[] = "/tmp/pons-overlay-XXXXXX";
    pons_error err = PONS_ERROR_INIT;
    drawn d;

    close(mkstemp(path));
    ck_assert_msg(!overlay_write(path, label, prediction, NULL, &err), "%s", err.text);
    ck_assert(!file_read(path, 1 << 24, &d.bytes, &d.size, PONS_DATA, &err));
    unlink(path);
    return d;
}

static drawn draw_regions(const volume *label, const volume *prediction, int first, int second)
{
    volume regions[2];
    drawn d;

    make_regions(label, (int[]){ first, second }, &regions[0]);
    make_regions(prediction, (int[]){ first, second }, &regions[1]);
    d = draw_overlay(&regions[0], &regions[1]);
    pons_volume_clear(&regions[0]);
    pons_volume_clear(&regions[1]);
    return d;
}

static bool drawings_are_equal(drawn a, drawn b)
{
    return a.size == b.size && !memcmp(a.bytes, b.bytes, a.size);
}

/* The first region is drawn like a class; the second one is drawn darker. */
START_TEST(every_region_has_its_outline)
{
    enum { ALONE, FIRST, SECOND, BOTH, COUNT };
    volume image, label, prediction;
    drawn d[COUNT];

    make_volumes(&image, &label, &prediction);
    d[BOTH] = draw_regions(&label, &prediction, 1, 2);
    d[FIRST] = draw_regions(&label, &prediction, 1, 0);
    d[SECOND] = draw_regions(&label, &prediction, 0, 1);
    for (int64_t n = 0; n < pons_volume_count(&label); n++) {
        ((uint8_t *)label.voxels)[n] &= 1;
        ((uint8_t *)prediction.voxels)[n] &= 1;
    }
    d[ALONE] = draw_overlay(&label, &prediction);
    ck_assert(drawings_are_equal(d[ALONE], d[FIRST]));
    ck_assert(!drawings_are_equal(d[FIRST], d[SECOND]));
    ck_assert(!drawings_are_equal(d[BOTH], d[FIRST]));
    for (int i = 0; i < COUNT; i++)
        free(d[i].bytes);
    pons_volume_clear(&image);
    pons_volume_clear(&label);
    pons_volume_clear(&prediction);
}
END_TEST

START_TEST(the_label_alone_chooses_the_slices)
{
    volume image, label, prediction;
    drawn d[2];

    make_volumes(&image, &label, &prediction);
    d[0] = draw_overlay(&label, &prediction);
    ((uint8_t *)prediction.voxels)[0] = 1; /* a corner, which no middle slice shows */
    d[1] = draw_overlay(&label, &prediction);
    ck_assert(drawings_are_equal(d[0], d[1]));
    for (int i = 0; i < 2; i++)
        free(d[i].bytes);
    pons_volume_clear(&image);
    pons_volume_clear(&label);
    pons_volume_clear(&prediction);
}
END_TEST

START_TEST(volumes_of_other_extents_are_refused)
{
    static const int64_t extent[3] = { 24, 32, 17 };
    pons_error err = PONS_ERROR_INIT;
    volume image, label, prediction, other;

    make_volumes(&image, &label, &prediction);
    ck_assert(!pons_volume_init(&other, PONS_U8, 1, extent, &err));
    ck_assert_int_eq(overlay_write("/tmp/pons-never.png", &label, &other, NULL, &err),
                     png_available() ? PONS_DATA : PONS_CONFIG);
    pons_volume_clear(&image);
    pons_volume_clear(&label);
    pons_volume_clear(&prediction);
    pons_volume_clear(&other);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("overlay");

    tcase_add_test(c, a_picture_has_three_panels_in_true_proportions);
    suite_add_test_if(c, png_available(), "png", every_region_has_its_outline);
    suite_add_test_if(c, png_available(), "png", the_label_alone_chooses_the_slices);
    tcase_add_test(c, volumes_of_other_extents_are_refused);
    return suite_run();
}
