/*
 * check_case_geometry.c - the stored geometry of many images matches the images, in any order and
 * any packed type. It survives conversion to text, and exactly the foreign images are reported.
 */
#include "support/suite.h"

#include "data/packed/case_geometry.h"
#include "data/volume/geometry.h"

#include <math.h>
#include <string.h>

/* Axes i, j, k run along the patient axes world[] with 'step' mm each. */
static void make_image(volume *v, const int world[3], const double step[3], int channels)
{
    static const int64_t extent[3] = { 3, 4, 5 };
    pons_error err = PONS_ERROR_INIT;

    ck_assert(!pons_volume_init(v, PONS_F32, channels, extent, &err));
    memset(v->affine, 0, sizeof v->affine);
    for (int a = 0; a < 3; a++)
        v->affine[world[a]][a] = step[a];
    for (int n = 0; n < 60 * channels; n++)
        ((float *)v->voxels)[n] = (float)n;
}

static const int straight[3] = { 0, 1, 2 };

static case_geometry geometry_of(const int world[3], const double step[3], float low, float high)
{
    case_geometry g;
    volume v;

    make_image(&v, world, step, 1);
    for (int n = 0; n < 60; n++)
        ((float *)v.voxels)[n] = low + (high - low) * (float)n / 59;
    case_geometry_of(&v, &g);
    pons_volume_clear(&v);
    return g;
}

START_TEST(every_orientation_has_a_unique_name)
{
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    arena *memory = arena_new();
    case_geometry all;

    case_geometry_init(&all);
    for (int n = 0; n < 48; n++) {
        double step[3] = { n & 1 ? -1 : 1, n & 2 ? -1 : 1, n & 4 ? -1 : 1 };
        case_geometry g;
        char codes[4];
        volume v;

        make_image(&v, orders[n / 8], step, 1);
        volume_orientation_codes((const double (*)[4])v.affine, codes);
        case_geometry_of_position(&v, &g);
        ck_assert_str_eq(case_geometry_orientations(memory, &g), codes);
        ck_assert_int_eq(g.channels, 0);
        case_geometry_join(&all, &g);
        pons_volume_clear(&v);
    }
    ck_assert_int_eq(case_geometry_orientation_count(&all), 48);
    arena_free(memory);
}
END_TEST

START_TEST(extents_and_spacings_are_along_the_patients_axes)
{
    static const int turned[3] = { 2, 0, 1 };
    static const double step[3] = { 3, -1, 2 };
    case_geometry g = geometry_of(turned, step, 0, 1);

    for (int a = 0; a < 3; a++) {
        ck_assert_double_eq_tol(g.spacing[a].low, a + 1, 1e-12);
        ck_assert_double_eq_tol(g.spacing[a].high, a + 1, 1e-12);
    }
    ck_assert_double_eq(g.extent[0].low, 4);
    ck_assert_double_eq(g.extent[1].low, 5);
    ck_assert_double_eq(g.extent[2].high, 3);
    ck_assert_double_eq_tol(g.field[0].low, 4, 1e-12);
    ck_assert_double_eq_tol(g.field[1].high, 10, 1e-12);
    ck_assert_double_eq_tol(g.field[2].high, 9, 1e-12);
}
END_TEST

/*
 * The image is packed as floats, as two bytes and as one byte, with one channel and with two
 * channels of different ranges.
 */
START_TEST(a_packed_image_keeps_its_geometry)
{
    static const sampling_spec wish = { .sets = SAMPLING_SETS_NONE };
    static const double step[3] = { 1, 1, 1 };
    int channels = _i % 2 + 1;
    pons_error err = PONS_ERROR_INIT;
    case_geometry plain, packed;
    pons_case c = { .size = sizeof c };
    packed_case p;

    make_image(&c.image, straight, step, channels);
    for (int n = 0; n < 60; n++)
        for (int k = 0; k < channels; k++)
            ((float *)c.image.voxels)[n * channels + k] = (float)((n * 7 % 60 - 30) * (k + 1));
    case_geometry_of(&c.image, &plain);
    ck_assert(!packed_case_init(&p, &c, &wish, &err));
    case_geometry_of_packed(&p, &packed);
    ck_assert_int_eq(plain.channels, channels);
    for (int k = 0; k < channels; k++) {
        ck_assert_double_eq(plain.value[k].low, -30 * (k + 1));
        ck_assert_double_eq(plain.value[k].high, 29 * (k + 1));
        ck_assert_double_eq(plain.span[k].low, 59 * (k + 1));
    }
    ck_assert(memcmp(&plain, &packed, sizeof plain) == 0);
    packed_case_clear(&p);
}
END_TEST

START_TEST(joining_geometries_ignores_order_and_repetition)
{
    static const int turned[3] = { 1, 0, 2 };
    static const double step[3] = { 1, 1, 1 }, far[3] = { -2, 1, 0.5 };
    const case_geometry a = geometry_of(straight, step, -5, 5), b = geometry_of(turned, far, 0, 90);
    case_geometry ab, ba;

    case_geometry_init(&ab);
    case_geometry_init(&ba);
    case_geometry_join(&ab, &a);
    case_geometry_join(&ab, &b);
    case_geometry_join(&ba, &b);
    case_geometry_join(&ba, &a);
    case_geometry_join(&ba, &b);
    ck_assert(memcmp(&ab, &ba, sizeof ab) == 0);
    ck_assert(case_geometry_spacing_varies(&ab) && !case_geometry_spacing_varies(&a));
    ck_assert_double_eq(ab.value[0].low, -5);
    ck_assert_double_eq(ab.span[0].low, 10);
    ck_assert_double_eq(ab.span[0].high, 90);
}
END_TEST

static bool read_text(const char *text, case_geometry *out)
{
    pons_error err = PONS_ERROR_INIT;
    json_t *d;

    ck_assert_msg(json_parse(text, strlen(text), "text", PONS_DATA, &d, &err) == PONS_OK, "%s",
                  err.text);
    bool read = case_geometry_read(d, out);
    json_decref(d);
    return read;
}

START_TEST(a_geometry_is_restored_from_its_text)
{
    static const int turned[3] = { 1, 0, 2 };
    static const double step[3] = { 1, 1, 1 }, far[3] = { -2, 1, 0.5 };
    const case_geometry b = geometry_of(turned, far, 0, 90);
    case_geometry a = geometry_of(straight, step, -5, 5), again;
    arena *memory = arena_new();

    case_geometry_join(&a, &b);
    ck_assert(read_text(case_geometry_text(memory, &a), &again));
    memset(a.largest, 0, sizeof a.largest); /* no part of the text */
    ck_assert(memcmp(&a, &again, sizeof a) == 0);
    arena_free(memory);
}
END_TEST

START_TEST(an_invalid_geometry_text_is_refused)
{
    static const char *const bad[] = {
        "{}", "[]", "{\"orientations\":[\"RAS\"]}", "{\"orientations\":[\"RAR\"]}",
        "{\"orientations\":[\"RAS\"],\"spacing\":{\"min\":[1,1],\"max\":[1,1,1]},"
        "\"extent\":{\"min\":[1,1,1],\"max\":[1,1,1]},\"intensity\":{\"min\":[0],\"max\":[1]},"
        "\"intensity_span\":{\"min\":[0],\"max\":[1]}}",
        "{\"orientations\":[\"RAS\"],\"spacing\":{\"min\":[1,1,1],\"max\":[1,1,1]},"
        "\"extent\":{\"min\":[1,1,1],\"max\":[1,1,1]},\"intensity\":{\"min\":[0,0],\"max\":[1]},"
        "\"intensity_span\":{\"min\":[0],\"max\":[1]}}",
        "{\"orientations\":[\"RAS\"],\"spacing\":{\"min\":[1,1,1],\"max\":[1,1,null]},"
        "\"extent\":{\"min\":[1,1,1],\"max\":[1,1,1]},\"intensity\":{\"min\":[0],\"max\":[1]},"
        "\"intensity_span\":{\"min\":[0],\"max\":[1]}}",
        "{\"orientations\":[\"RAS\"],\"spacing\":{\"min\":[1,1,1],\"max\":[1,1,1]},"
        "\"extent\":{\"min\":[1,1,1],\"max\":[1,1,1]},"
        "\"field_of_view\":{\"min\":[1,1],\"max\":[1,1,1]},"
        "\"intensity\":{\"min\":[0],\"max\":[1]},"
        "\"intensity_span\":{\"min\":[0],\"max\":[1]}}",
    };
    case_geometry g;

    ck_assert(!read_text(bad[_i], &g));
}
END_TEST

START_TEST(a_text_without_field_of_view_implies_the_widest)
{
    static const char text[] =
        "{\"orientations\":[\"RAS\"],\"spacing\":{\"min\":[1,1,2],\"max\":[1,3,4]},"
        "\"extent\":{\"min\":[10,20,30],\"max\":[10,40,50]},"
        "\"intensity\":{\"min\":[0],\"max\":[1]},"
        "\"intensity_span\":{\"min\":[0],\"max\":[1]}}";
    arena *memory = arena_new();
    case_geometry g;

    ck_assert(read_text(text, &g));
    ck_assert_str_eq(case_geometry_fields(memory, &g), "10 x 20 x 60 to 10 x 120 x 200");
    arena_free(memory);
}
END_TEST

/* The known images measure 3 x 4 x 5 and 6 x 8 x 10 mm. */
START_TEST(field_of_view_is_compared_in_millimetres)
{
    static const struct { double step[3]; int across, side; } cases[] = {
        { { 1, 1, 1 }, -1, 0 }, { { 2, 2, 2 }, -1, 0 },
        { { 3.9, 3.9, 3.9 }, -1, 0 }, { { 0.51, 0.51, 0.51 }, -1, 0 },
        { { 4.1, 1, 1 }, -1, 1 }, { { 1, 1, 4.1 }, -1, 1 },
        { { 0.49, 1, 1 }, -1, -1 }, { { 1, 0.49, 1 }, -1, -1 },
        { { 1, 0.49, 4.1 }, -1, -1 }, { { 1, 1, 4.1 }, 2, 0 }, { { 1, 1, 4.1 }, 0, 1 },
    };
    static const double near[3] = { 1, 1, 1 }, far[3] = { 2, 2, 2 };
    const case_geometry other = geometry_of(straight, far, 0, 1);
    case_geometry seen = geometry_of(straight, near, 0, 1), g;

    case_geometry_join(&seen, &other);
    g = geometry_of(straight, cases[_i].step, 0, 1);
    ck_assert_int_eq(case_geometry_foreign_field(&seen, &g, cases[_i].across), cases[_i].side);
}
END_TEST

/* The known images have 1 mm voxels in RAS, with values of -1000 to 1000 and -900 to 2000. */
START_TEST(exactly_the_foreign_images_are_reported)
{
    static const struct {
        double step[3];
        float low, high;
        bool turned, scaled;
        int channel;
    } cases[] = {
        { { 1, 1, 1 }, -1000, 1000, false, false, -1 },
        { { 1.2, 0.85, 1 }, -1024, 3071, false, false, -1 },
        { { 1, 1, 1.3 }, -1000, 1000, false, true, -1 },
        { { 0.7, 1, 1 }, -1000, 1000, false, true, -1 },
        { { -1, 1, 1 }, -1000, 1000, true, false, -1 },
        { { 1, 1, 1 }, 0, 1, false, false, 0 },
        { { 1, 1, 1 }, 0, 255, false, false, -1 },
        { { 1, 1, 1 }, 0, 65535, false, false, 0 },
        { { 1, 1, 1 }, 3000, 5000, false, false, 0 },
        { { 1, 1, 1 }, 7, 7, false, false, 0 },
    };
    static const double step[3] = { 1, 1, 1 };
    const case_geometry other = geometry_of(straight, step, -900, 2000);
    case_geometry seen = geometry_of(straight, step, -1000, 1000), g;

    case_geometry_join(&seen, &other);
    g = geometry_of(straight, cases[_i].step, cases[_i].low, cases[_i].high);
    ck_assert_int_eq(case_geometry_is_turned(&seen, &g), cases[_i].turned);
    ck_assert_int_eq(case_geometry_is_scaled(&seen, &g), cases[_i].scaled);
    ck_assert_int_eq(case_geometry_foreign_channel(&seen, &g), cases[_i].channel);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("case_geometry");

    tcase_add_test(c, every_orientation_has_a_unique_name);
    tcase_add_test(c, extents_and_spacings_are_along_the_patients_axes);
    tcase_add_loop_test(c, a_packed_image_keeps_its_geometry, 0, 2);
    tcase_add_test(c, joining_geometries_ignores_order_and_repetition);
    tcase_add_test(c, a_geometry_is_restored_from_its_text);
    tcase_add_loop_test(c, an_invalid_geometry_text_is_refused, 0, 8);
    tcase_add_test(c, a_text_without_field_of_view_implies_the_widest);
    tcase_add_loop_test(c, field_of_view_is_compared_in_millimetres, 0, 11);
    tcase_add_loop_test(c, exactly_the_foreign_images_are_reported, 0, 10);
    return suite_run();
}
