/*
 * check_pictures.c - pictures of every kind give the values that PIL gives
 * (tests/golden/pictures.py), and damaged ones are refused in one line.
 */
#include "support/data/golden_arrays.h"
#include "support/data/golden_file.h"
#include "support/root.h"
#include "support/suite.h"

#include "base/build_feature.h"
#include "base/file/file.h"
#include "data/picture/picture_read.h"
#include "data/reader/volume_read.h"

#include <stdlib.h>
#include <string.h>

/* The formats, and the number of file names of each below. */
static const struct format {
    const char *library;
    const char *picture[16];
} formats[] = {
    { "libpng", { "grey.png", "grey_alpha.png", "rgb.png", "rgba.png", "bits1.png", "palette2.png",
                  "palette8_transparent.png", "grey16.png", "rgb16.png", "interlaced.png" } },
    { "libjpeg", { "grey.jpg", "rgb.jpg", "rgb444.jpeg", "progressive.JPG", "cmyk.jpg",
                   "orientation.jpg" } },
    { "libtiff", { "rgb.tif", "lzw.tiff", "deflate.tif", "bits1.tif", "palette.tif", "rgba.tif",
                   "jpeg.tif", "tiled.tif", "planes.tif", "planes_tiled.tif", "rgb16_big.tif",
                   "white.tif", "labels16.tif" } },
};

enum { FORMAT_PNG = 0, FORMAT_JPEG, FORMAT_TIFF, FORMAT_COUNT };

static bool has_format(int format)
{
    return build_feature_missing("", formats[format].library) == NULL;
}

static const char *picture_path(const char *name)
{
    char joined[128];

    snprintf(joined, sizeof joined, "pictures/%s", name);
    return golden_path(joined);
}

/* ---- values ---------------------------------------------------------------------------------- */

static const safetensor *array_of(const safetensors *arrays, const char *name, const char *use)
{
    char key[128];

    snprintf(key, sizeof key, "%s/%s", name, use);
    return safetensors_find(arrays, key);
}

static void assert_facts(const char *path, const volume *v, int channels)
{
    volume_facts facts;

    MUST(volume_read_facts(path, &facts, &error));
    for (int a = 0; a < 3; a++) {
        ck_assert_msg(facts.grid.extent[a] == v->extent[a], "%s: axis %d", path, a);
        ck_assert_msg(facts.grid.spacing[a] == 1 && facts.grid.affine[a][a] == 1, "%s: grid", path);
    }
    ck_assert_msg(facts.channels == channels, "%s: %d channels", path, facts.channels);
}

static void assert_image(const char *name, const safetensor *expected)
{
    double *value = malloc((size_t)expected->count * sizeof *value);
    volume v;

    ck_assert_ptr_nonnull(value);
    safetensor_doubles(expected, value);
    MUST(volume_read_image(picture_path(name), &v, NULL, &error));
    ck_assert_msg(v.type == PONS_F32 && v.extent[0] == 1 && v.extent[1] == expected->extent[0]
                  && v.extent[2] == expected->extent[1] && v.channels == expected->extent[2],
                  "%s: shape", name);
    assert_facts(picture_path(name), &v, v.channels);
    for (int64_t n = 0; n < expected->count; n++)
        ck_assert_msg((double)((const float *)v.voxels)[n] == value[n], "%s: value %d is %g, "
                      "expected %g", name, (int)n, (double)((const float *)v.voxels)[n], value[n]);
    pons_volume_clear(&v);
    free(value);
}

static double id_at(const volume *v, int64_t n)
{
    return v->type == PONS_U8 ? ((const uint8_t *)v->voxels)[n] : ((const int32_t *)v->voxels)[n];
}

/* Labels are I32, and U8 if all ids fit. */
static void assert_label(const char *name, const safetensor *expected)
{
    double *value = malloc((size_t)expected->count * sizeof *value), largest = 0;
    volume_facts facts;
    volume v[2];

    ck_assert_ptr_nonnull(value);
    safetensor_doubles(expected, value);
    MUST(volume_read_label(picture_path(name), &v[0], NULL, &error));
    MUST(volume_read_label_compact(picture_path(name), &v[1], NULL, &error));
    MUST(volume_read_label_facts(picture_path(name), &facts, &error));
    ck_assert_msg(facts.channels == 1, "%s: a label has %d channels", name, facts.channels);
    for (int64_t n = 0; n < expected->count; n++) {
        largest = value[n] > largest ? value[n] : largest;
        for (int i = 0; i < 2; i++)
            ck_assert_msg(id_at(&v[i], n) == value[n], "%s: id %d is %g, expected %g", name, (int)n,
                          id_at(&v[i], n), value[n]);
    }
    ck_assert_int_eq(v[0].type, PONS_I32);
    ck_assert_int_eq(v[1].type, largest > 255 ? PONS_I32 : PONS_U8);
    for (int i = 0; i < 2; i++)
        pons_volume_clear(&v[i]);
    free(value);
}

START_TEST(a_picture_gives_the_values_of_pil)
{
    safetensors *arrays = open_arrays("pictures.safetensors");
    int labels = 0, images = 0;

    for (const char *const *name = formats[_i].picture; *name != NULL; name++) {
        const safetensor *image = array_of(arrays, *name, "image");
        const safetensor *label = array_of(arrays, *name, "label");
        ck_assert_msg(image != NULL, "%s has no golden values", *name);
        assert_image(*name, image);
        images++;
        if (label == NULL)
            continue;
        assert_label(*name, label);
        labels++;
    }
    ck_assert_int_gt(images, 5);
    ck_assert(labels > 2 || _i == FORMAT_JPEG);
    safetensors_close(arrays);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

/* The file is refused with a line that names it, or it is the picture 'whole' (may be NULL). */
static bool is_refused(const char *path, pons_status status, const volume *whole, const char *where)
{
    pons_error err = PONS_ERROR_INIT;
    volume v = { .voxels = NULL };

    if (volume_read_image(path, &v, NULL, &err) == PONS_OK) {
        ck_assert_msg(whole == NULL
                      || (pons_volume_size(&v) == pons_volume_size(whole)
                          && memcmp(v.voxels, whole->voxels, pons_volume_size(whole)) == 0),
                      "%s: other pixels", where);
        pons_volume_clear(&v);
        return false;
    }
    ck_assert_msg(err.status == status, "%s: status %d, %s", where, (int)err.status, err.text);
    ck_assert_msg(strstr(err.text, path) != NULL && strchr(err.text, '\n') == NULL, "%s: %s", where,
                  err.text);
    ck_assert_msg(strstr(err.text, "4294967295") == NULL, "%s: %s", where, err.text);
    ck_assert_ptr_null(v.voxels);
    return true;
}

/* The next byte to try: all of the header and of the end, and some between them. */
static size_t next_byte(size_t at, size_t size)
{
    bool near_end = at < 32 || at + 8 >= size;

    return near_end || at + size / 32 + 8 >= size ? at + 1 : at + size / 32;
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert(size == 0 || fwrite(bytes, 1, size, f) == size);
    ck_assert_int_eq(fclose(f), 0);
}

static void assert_truncations_refused(const char *name, bool at_every_byte)
{
    char where[128], *bytes;
    size_t size;
    volume whole;
    const char *path = in_root(name);

    MUST(volume_read_image(picture_path(name), &whole, NULL, &error));
    MUST(file_read(picture_path(name), 1 << 20, &bytes, &size, PONS_DATA, &error));
    for (size_t length = 0; length < size; length = next_byte(length, size)) {
        snprintf(where, sizeof where, "%s cut to %zu of %zu bytes", name, length, size);
        write_bytes(path, bytes, length);
        ck_assert_msg(is_refused(path, PONS_DATA, &whole, where) || !at_every_byte,
                      "%s is accepted", where);
    }
    free(bytes);
    pons_volume_clear(&whole);
}

/* A TIFF file may end in bytes that no tag names; then it is the same picture without them. */
START_TEST(a_truncated_picture_is_refused)
{
    for (const char *const *name = formats[_i].picture; *name != NULL; name++)
        assert_truncations_refused(*name, _i != FORMAT_TIFF);
}
END_TEST

START_TEST(a_changed_byte_is_refused_or_changes_pixels)
{
    char where[128], *bytes;
    size_t size, refused;

    for (const char *const *name = formats[_i].picture; *name != NULL; name++) {
        const char *path = in_root(*name);
        MUST(file_read(picture_path(*name), 1 << 20, &bytes, &size, PONS_DATA, &error));
        refused = 0;
        for (size_t at = 0; at < size; at = next_byte(at, size)) {
            snprintf(where, sizeof where, "%s with another byte %zu", *name, at);
            bytes[at] = (char)~bytes[at];
            write_bytes(path, bytes, size);
            refused += is_refused(path, PONS_DATA, NULL, where);
            bytes[at] = (char)~bytes[at];
        }
        ck_assert_msg(refused > 4, "%s: %d changes were refused", *name, (int)refused);
        free(bytes);
    }
}
END_TEST

static void assert_line(const char *name, const void *bytes, size_t size, const char *phrase)
{
    const char *path = in_root(name);
    pons_error err = PONS_ERROR_INIT;
    volume v = { .voxels = NULL };

    write_bytes(path, bytes, size);
    ck_assert_int_eq(volume_read_image(path, &v, NULL, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, phrase) != NULL && strstr(err.text, path) != NULL,
                  "'%s' is not in: %s", phrase, err.text);
    ck_assert_ptr_null(v.voxels);
}

START_TEST(other_files_are_refused_by_what_they_are)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";

    assert_line("a.png", "", 0, "it is empty, expected a picture (PNG, JPEG, TIFF)");
    assert_line("a.JPEG", "abc", 3, "its format is unknown, expected a picture");
    assert_line("a.tif", "PK\3\4abcd", 8, "it is a zip archive, expected a PNG, JPEG or TIFF");
    assert_line("a.jpg", pointer, sizeof pointer - 1, "hint: git lfs pull");
    assert_line("a.nii", "\x89PNG\r\n\x1a\n", 8, "hint: the name of a picture ends in .png");
}
END_TEST

START_TEST(a_picture_of_another_name_is_read_by_its_bytes)
{
    char *bytes;
    size_t size;
    volume v;

    MUST(file_read(picture_path("rgb.png"), 1 << 20, &bytes, &size, PONS_DATA, &error));
    write_bytes(in_root("n02105855_2933.JPEG"), bytes, size);
    MUST(volume_read_image(in_root("n02105855_2933.JPEG"), &v, NULL, &error));
    ck_assert_int_eq(v.channels, 3);
    pons_volume_clear(&v);
    free(bytes);
}
END_TEST

START_TEST(a_label_with_colours_is_refused)
{
    pons_error err = PONS_ERROR_INIT;
    volume v = { .voxels = NULL };

    ck_assert_int_eq(volume_read_label(picture_path("rgb.png"), &v, NULL, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "has 3 channels, expected 1: grey, or indices"));
    ck_assert_ptr_null(v.voxels);
}
END_TEST

START_TEST(extents_are_checked_before_memory_is_taken)
{
    static const unsigned char big[] = {
        0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 1, 0x86,
        0xa0, 0, 1, 0x86, 0xa0, 8, 2, 0, 0, 0, 0x27, 0x30, 0x9c, 0x9f,
        0, 0, 0, 0, 'I', 'D', 'A', 'T', 0x35, 0xaf, 0x06, 0x1e
    };
    static const unsigned char thin[] = {
        0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 0, 0x40,
        0, 0, 0, 0x40, 0, 8, 2, 0, 0, 0, 0x26, 0xaa, 0x87, 0xd3, 0, 0, 0, 0, 'I', 'D', 'A', 'T',
        0x35, 0xaf, 0x06, 0x1e
    };

    assert_line("big.png", big, sizeof big, "it has 100000 x 100000 pixels, expected at most "
                "268435456 in all");
    assert_line("thin.png", thin, sizeof thin, "cannot hold 16384 x 16384 pixels");
}
END_TEST

START_TEST(the_extents_of_a_jpeg_are_checked)
{
    char *bytes, *frame;
    size_t size;

    MUST(file_read(picture_path("rgb.jpg"), 1 << 20, &bytes, &size, PONS_DATA, &error));
    frame = memmem(bytes, size, "\xff\xc0\0\x11\x08", 5);
    ck_assert_ptr_nonnull(frame);
    memcpy(frame + 5, "\xff\xdc\xff\xdc", 4);
    assert_line("big.jpg", bytes, size, "it has 65500 x 65500 pixels, expected at most");
    free(bytes);
}
END_TEST

START_TEST(the_extents_of_a_tiff_are_checked)
{
    static const unsigned char big[] = {
        'I', 'I', '*', 0, 8, 0, 0, 0, 4, 0, 0, 1, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0x40,
        1, 1, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0x11, 1, 4, 0, 1, 0, 0, 0, 8, 0, 0, 0,
        0x17, 1, 4, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0
    };

    assert_line("big.tif", big, sizeof big, "it has 1073741824 x 1073741824 pixels");
}
END_TEST

/* The bytes of a golden picture as the file 'as', with some of them changed. */
static const char *changed_copy(const char *name, const char *as,
                                size_t (*change)(unsigned char *bytes, size_t size))
{
    char *bytes;
    size_t size;

    MUST(file_read(picture_path(name), 1 << 20, &bytes, &size, PONS_DATA, &error));
    size = change((unsigned char *)bytes, size);
    write_bytes(in_root(as), bytes, size);
    free(bytes);
    return in_root(as);
}

/* Put markers of an end into the second half of the coded pixels. */
static size_t end_early(unsigned char *bytes, size_t size)
{
    unsigned char *scan = memmem(bytes, size, "\xff\xda", 2), *end;

    ck_assert_ptr_nonnull(scan);
    end = memmem(scan, size - (size_t)(scan - bytes), "\xff\xd9", 2);
    ck_assert_ptr_nonnull(end);
    for (unsigned char *at = scan + (end - scan) / 2; at + 1 < end; at += 2)
        memcpy(at, "\xff\xd9", 2);
    return size;
}

START_TEST(a_jpeg_strip_of_a_tiff_that_ends_too_early_is_refused)
{
    const char *path = changed_copy("jpeg.tif", "cut_strip.tif", end_early);

    ck_assert(is_refused(path, PONS_DATA, NULL, "a cut strip"));
}
END_TEST

/* Leave out Adobe's marker, APP14. */
static size_t drop_adobe(unsigned char *bytes, size_t size)
{
    unsigned char *marker = memmem(bytes, size, "\xff\xee", 2);
    size_t length;

    ck_assert_ptr_nonnull(marker);
    length = 2 + ((size_t)marker[2] << 8) + marker[3];
    memmove(marker, marker + length, size - (size_t)(marker - bytes) - length);
    return size - length;
}

START_TEST(inks_without_a_marker_are_those_of_adobe)
{
    const char *path = changed_copy("cmyk.jpg", "plain.jpg", drop_adobe);
    volume whole;

    MUST(volume_read_image(picture_path("cmyk.jpg"), &whole, NULL, &error));
    ck_assert(!is_refused(path, PONS_DATA, &whole, "CMYK without a marker"));
    pons_volume_clear(&whole);
}
END_TEST

/* ---- channels and builds --------------------------------------------------------------------- */

START_TEST(a_grey_picture_beside_coloured_ones_gets_three_channels)
{
    volume v = { .voxels = NULL };
    float value[] = { 3, 250 };

    MUST(pons_volume_init(&v, PONS_F32, 1, (const int64_t[]){ 1, 1, 2 }, &error));
    memcpy(v.voxels, value, sizeof value);
    MUST(picture_match_channels("a.nii", 3, &v, &error));
    MUST(picture_match_channels("a.png", 1, &v, &error));
    ck_assert_int_eq(v.channels, 1);
    MUST(picture_match_channels("a.png", 3, &v, &error));
    ck_assert_int_eq(v.channels, 3);
    for (int n = 0; n < 6; n++)
        ck_assert(((const float *)v.voxels)[n] == value[n / 3]);
    pons_volume_clear(&v);
}
END_TEST

START_TEST(a_format_that_the_build_lacks_is_named)
{
    pons_error err = PONS_ERROR_INIT;
    volume v = { .voxels = NULL };

    ck_assert_int_eq(volume_read_image(picture_path(formats[_i].picture[0]), &v, NULL, &err),
                     PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, formats[_i].library));
    ck_assert_ptr_nonnull(strstr(err.text, "which is not in this build"));
}
END_TEST

static void add_format(TCase *c, int format)
{
    if (!suite_has("the values of a format", has_format(format), formats[format].library)) {
        tcase_add_loop_test(c, a_format_that_the_build_lacks_is_named, format, format + 1);
        return;
    }
    tcase_add_loop_test(c, a_picture_gives_the_values_of_pil, format, format + 1);
    tcase_add_loop_test(c, a_truncated_picture_is_refused, format, format + 1);
    tcase_add_loop_test(c, a_changed_byte_is_refused_or_changes_pixels, format, format + 1);
}

int main(void)
{
    TCase *c = suite_new("pictures");

    tcase_add_checked_fixture(c, make_root, remove_root);
    for (int format = 0; format < FORMAT_COUNT; format++)
        add_format(c, format);
    tcase_add_test(c, other_files_are_refused_by_what_they_are);
    tcase_add_test(c, a_grey_picture_beside_coloured_ones_gets_three_channels);
    if (has_format(FORMAT_PNG)) {
        tcase_add_test(c, a_picture_of_another_name_is_read_by_its_bytes);
        tcase_add_test(c, a_label_with_colours_is_refused);
        tcase_add_test(c, extents_are_checked_before_memory_is_taken);
    }
    if (has_format(FORMAT_JPEG)) {
        tcase_add_test(c, the_extents_of_a_jpeg_are_checked);
        tcase_add_test(c, inks_without_a_marker_are_those_of_adobe);
    }
    if (has_format(FORMAT_TIFF)) {
        tcase_add_test(c, the_extents_of_a_tiff_are_checked);
        tcase_add_test(c, a_jpeg_strip_of_a_tiff_that_ends_too_early_is_refused);
    }
    return suite_run();
}
