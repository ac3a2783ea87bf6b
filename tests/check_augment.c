/*
 * check_augment.c - random transforms on a sample, from the INI's text to voxels.
 */
#include "data/transform/augment.h"
#include "data/loader/patch_extract.h"

#include "dataset_maker.h"
#include "suite.h"

#include <math.h>

enum { SIDE = 7, VOXELS = SIDE * SIDE * SIDE };

typedef struct run {
    config *ini;
    volume_chain *chain;
    augment augment;
    packed_case packed;
    int64_t extent[3];         /* of the patch */
    float image[2 * VOXELS];
    uint8_t label[VOXELS];
} run;

/* A cube: the first channel holds the voxel's number, the second its half, the label its parity. */
static void make_cube(packed_case *p)
{
    const int64_t extent[3] = { SIDE, SIDE, SIDE };
    packed_wish wish = { PACKED_SETS_NONE, 0, 0 };
    pons_error err = PONS_ERROR_INIT;
    pons_case c = { .size = sizeof c };

    ck_assert_int_eq(pons_volume_init(&c.image, PONS_F32, 2, extent, &err), PONS_OK);
    ck_assert_int_eq(pons_volume_init(&c.label, PONS_U8, 1, extent, &err), PONS_OK);
    for (int v = 0; v < VOXELS; v++) {
        ((float *)c.image.voxels)[2 * v] = (float)v;
        ((float *)c.image.voxels)[2 * v + 1] = (float)v / 2;
        ((uint8_t *)c.label.voxels)[v] = v % 2;
    }
    ck_assert_int_eq(packed_case_init(p, &c, &wish, &err), PONS_OK);
}

static pons_status run_try(run *r, const char *text, pons_error *err)
{
    memset(r, 0, sizeof *r);
    maker_text("a.ini", text);
    ck_assert_msg(config_open(maker_path("a.ini"), 0, NULL, &r->ini, err) == PONS_OK, "%s",
                  err->text);
    return volume_chain_open(r->ini, "augment", true, 2, &r->chain, err);
}

static void run_open(run *r, const char *text)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(run_try(r, text, &err) == PONS_OK, "%s", err.text);
    ck_assert_msg(augment_init(&r->augment, r->chain, &err) == PONS_OK, "%s", err.text);
    make_cube(&r->packed);
    for (int a = 0; a < 3; a++)
        r->extent[a] = SIDE;
}

static void run_close(run *r)
{
    packed_case_clear(&r->packed);
    augment_clear(&r->augment);
    volume_chain_close(r->chain);
    config_close(r->ini);
}

/* Sample number 'n' of the cube, its box at 'start' (NULL: 0). */
static void run_sample(run *r, uint64_t n, const int64_t *start)
{
    static const int64_t corner[3] = { 0, 0, 0 };
    const int64_t *e = r->extent;
    pons_sample sample = { .size = sizeof sample, .extent = { e[0], e[1], e[2] },
                           .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
    pons_patch patch = { .size = sizeof patch, .extent = { e[0], e[1], e[2] }, .channels = 2,
                         .label_channels = 1, .image = r->image, .label = r->label };
    pons_rng draws = { .seed = 3, .sample = n };
    pons_error err = PONS_ERROR_INIT;
    char records[512];

    ck_assert_uint_le(augment_record_size(&r->augment), sizeof records);
    ck_assert_int_eq(augment_plan(&r->augment, &draws, &sample, records, &err), PONS_OK);
    patch_cut(&r->packed, &sample, start != NULL ? start : corner, LOADER_PAD_ZERO, 0, e[0],
              r->image, r->label);
    ck_assert_int_eq(augment_apply(&r->augment, 0, augment_count(&r->augment), records, &patch,
                                   &err), PONS_OK);
}

static int number(int i, int j, int k)
{
    return (i * SIDE + j) * SIDE + k;
}

/* ---- moves ----------------------------------------------------------------------------------- */

START_TEST(a_flip_along_one_axis_reverses_it)
{
    run r;

    run_open(&r, "[augment]\nsteps = flip\n[augment.flip]\naxes = 1\nprobability = 1\n");
    run_sample(&r, 0, NULL);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; k < SIDE; k++) {
                ck_assert_float_eq(r.image[2 * number(i, j, k)], number(i, SIDE - 1 - j, k));
                ck_assert_int_eq(r.label[number(i, j, k)], number(i, SIDE - 1 - j, k) % 2);
            }
    run_close(&r);
}
END_TEST

START_TEST(flipping_twice_is_nothing)
{
    run r;

    run_open(&r, "[augment]\nsteps = a b\n[augment.a]\nplugin = flip\naxes = 0 1 2\n"
                 "probability = 1\n[augment.b]\nplugin = flip\naxes = 2 1 0\nprobability = 1\n");
    run_sample(&r, 0, NULL);
    for (int v = 0; v < VOXELS; v++) {
        ck_assert_float_eq(r.image[2 * v], v);
        ck_assert_int_eq(r.label[v], v % 2);
    }
    run_close(&r);
}
END_TEST

START_TEST(each_axis_is_flipped_by_itself_at_its_rate)
{
    int seen[8] = { 0 };
    double chi = 0;
    run r;

    run_open(&r, "[augment]\nsteps = flip\n[augment.flip]\naxes = 0 1 2\nprobability = 0.5\n");
    for (uint64_t n = 0; n < 800; n++) {
        run_sample(&r, n, NULL);
        int first = (int)r.image[0];
        seen[(first / 49 > 0) << 2 | (first / 7 % 7 > 0) << 1 | (first % 7 > 0)]++;
    }
    for (int i = 0; i < 8; i++) /* 7 degrees of freedom: 99.99 % below 29.9 */
        chi += (seen[i] - 100) * (seen[i] - 100) / 100.0;
    ck_assert_double_lt(chi, 29.9);
    run_close(&r);
}
END_TEST

START_TEST(axes_flip_together_where_that_is_asked_for)
{
    int seen[2] = { 0 };
    run r;

    run_open(&r, "[augment]\nsteps = flip\n[augment.flip]\naxes = 0 2\nprobability = 0.5\n"
                 "together = yes\n");
    for (uint64_t n = 0; n < 800; n++) {
        run_sample(&r, n, NULL);
        ck_assert(r.image[0] == 0 || r.image[0] == number(SIDE - 1, 0, SIDE - 1));
        seen[r.image[0] > 0]++;
    }
    ck_assert_int_gt(seen[0], 345); /* 400, less 3.9 standard deviations of 14.1 */
    ck_assert_int_gt(seen[1], 345);
    run_close(&r);
}
END_TEST

START_TEST(a_quarter_turn_is_that_of_numpy)
{
    run r;

    run_open(&r, "[augment]\nsteps = rotate90\n[augment.rotate90]\naxes = 0 2\nmax_k = 1\n"
                 "probability = 1\n");
    run_sample(&r, 0, NULL);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; k < SIDE; k++)
                ck_assert_float_eq(r.image[2 * number(i, j, k)], number(k, j, SIDE - 1 - i));
    run_close(&r);
}
END_TEST

START_TEST(four_quarter_turns_are_nothing)
{
    run r;

    run_open(&r, "[augment]\nsteps = a b c d\n"
                 "[augment.a]\nplugin = rotate90\naxes = 1 2\nmax_k = 1\nprobability = 1\n"
                 "[augment.b]\nplugin = rotate90\naxes = 1 2\nmax_k = 1\nprobability = 1\n"
                 "[augment.c]\nplugin = rotate90\naxes = 1 2\nmax_k = 1\nprobability = 1\n"
                 "[augment.d]\nplugin = rotate90\naxes = 1 2\nmax_k = 1\nprobability = 1\n");
    run_sample(&r, 0, NULL);
    for (int v = 0; v < VOXELS; v++)
        ck_assert_float_eq(r.image[2 * v], v);
    run_close(&r);
}
END_TEST

/* A patch of 2 x 6 x 3 turned in the plane 0 1 is read from a box of 6 x 2 x 3. */
START_TEST(a_turned_patch_keeps_its_extent)
{
    const int64_t start[3] = { 1, 3, 2 };
    run r;

    run_open(&r, "[augment]\nsteps = rotate90\n[augment.rotate90]\nmax_k = 1\nprobability = 1\n");
    r.extent[0] = 2;
    r.extent[1] = 6;
    r.extent[2] = 3;
    run_sample(&r, 0, start);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 6; j++)
            for (int k = 0; k < 3; k++)
                ck_assert_float_eq(r.image[2 * ((i * 6 + j) * 3 + k)],
                                   number(1 + j, 3 + 1 - i, 2 + k));
    run_close(&r);
}
END_TEST

START_TEST(any_number_of_quarters_is_equally_likely)
{
    int seen[4] = { 0 };
    run r;

    run_open(&r, "[augment]\nsteps = rotate90\n[augment.rotate90]\nprobability = 1\n");
    for (uint64_t n = 0; n < 600; n++) {
        run_sample(&r, n, NULL);
        int first = (int)r.image[0];
        seen[(first / 49 > 0) << 1 | (first / 7 % 7 > 0)]++;
    }
    ck_assert_int_eq(seen[0], 0);
    for (int i = 1; i < 4; i++) { /* deviation 11.5, five of them */
        ck_assert_int_gt(seen[i], 142);
        ck_assert_int_lt(seen[i], 258);
    }
    run_close(&r);
}
END_TEST

/* Half a voxel along k: the mean of two neighbours, the last one with the zero behind it. */
START_TEST(any_other_map_interpolates)
{
    pons_sample sample = { .size = sizeof sample, .extent = { SIDE, SIDE, SIDE },
                           .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0.5 } } };
    const int64_t start[3] = { 0, 0, 0 };
    run r;

    run_open(&r, "[augment]\n");
    patch_cut(&r.packed, &sample, start, LOADER_PAD_ZERO, 0, SIDE, r.image, r.label);
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++) {
            double next = k + 1 < SIDE ? number(i, 2, k + 1) : 0;
            ck_assert_float_eq_tol(r.image[2 * number(i, 2, k)], (number(i, 2, k) + next) / 2,
                                   1e-4);
        }
    run_close(&r);
}
END_TEST

/* ---- values ---------------------------------------------------------------------------------- */

START_TEST(scaling_multiplies_by_one_number_in_the_range)
{
    double low = 9, high = 0;
    run r;

    run_open(&r, "[augment]\nsteps = scale_intensity\n[augment.scale_intensity]\nfactors = 0.1\n"
                 "probability = 1\n");
    for (uint64_t n = 0; n < 200; n++) {
        run_sample(&r, n, NULL);
        double f = r.image[2 * 342] / 342.0;
        low = fmin(low, f);
        high = fmax(high, f);
        for (int v = 1; v < VOXELS; v++) {
            ck_assert_float_eq_tol(r.image[2 * v], v * f, 1e-4);
            ck_assert_float_eq_tol(r.image[2 * v + 1], v * f / 2, 1e-4);
        }
    }
    ck_assert_double_ge(low, 0.9);
    ck_assert_double_lt(low, 0.91);
    ck_assert_double_le(high, 1.1);
    ck_assert_double_gt(high, 1.09);
    run_close(&r);
}
END_TEST

START_TEST(shifting_adds_a_number_to_the_named_channel)
{
    run r;

    run_open(&r, "[augment]\nsteps = shift_intensity\n[augment.shift_intensity]\noffsets = 2 3\n"
                 "probability = 1\nchannels = 1\n");
    run_sample(&r, 5, NULL);
    double o = r.image[1];
    ck_assert_double_ge(o, 2);
    ck_assert_double_lt(o, 3);
    for (int v = 0; v < VOXELS; v++) {
        ck_assert_float_eq(r.image[2 * v], v);
        ck_assert_float_eq_tol(r.image[2 * v + 1], v / 2.0 + o, 1e-4);
    }
    run_close(&r);
}
END_TEST

START_TEST(channel_wise_draws_a_number_for_each_channel)
{
    run r;

    run_open(&r, "[augment]\nsteps = shift_intensity\n[augment.shift_intensity]\noffsets = 1\n"
                 "probability = 1\nchannel_wise = yes\n");
    run_sample(&r, 5, NULL);
    ck_assert(r.image[0] != r.image[1]);
    run_close(&r);
}
END_TEST

/* 686 values of deviation 0.5 around 2: the mean's deviation is 0.019, the variance's 0.0135. */
START_TEST(noise_has_its_mean_and_deviation)
{
    double sum = 0, square = 0;
    run r;

    run_open(&r, "[augment]\nsteps = gaussian_noise\n[augment.gaussian_noise]\nmean = 2\n"
                 "std = 0.5\nsample_std = no\nprobability = 1\n");
    run_sample(&r, 1, NULL);
    for (int v = 0; v < 2 * VOXELS; v++) {
        double d = r.image[v] - (v % 2 ? v / 2 / 2.0 : v / 2);
        sum += d;
        square += d * d;
    }
    double mean = sum / (2 * VOXELS), variance = square / (2 * VOXELS) - mean * mean;
    ck_assert_double_eq_tol(mean, 2, 0.1);
    ck_assert_double_eq_tol(variance, 0.25, 0.07);
    run_close(&r);
}
END_TEST

START_TEST(a_drawn_deviation_lies_below_std)
{
    double largest = 0, smallest = 9;
    run r;

    run_open(&r, "[augment]\nsteps = gaussian_noise\n[augment.gaussian_noise]\nstd = 1\n"
                 "probability = 1\n");
    for (uint64_t n = 0; n < 50; n++) {
        double square = 0;
        run_sample(&r, n, NULL);
        for (int v = 0; v < VOXELS; v++)
            square += (r.image[2 * v] - v) * (r.image[2 * v] - v);
        largest = fmax(largest, sqrt(square / VOXELS));
        smallest = fmin(smallest, sqrt(square / VOXELS));
    }
    ck_assert_double_lt(largest, 1.2);
    ck_assert_double_gt(largest, 0.8);
    ck_assert_double_lt(smallest, 0.2);
    run_close(&r);
}
END_TEST

START_TEST(a_probability_of_zero_changes_nothing)
{
    run r;

    run_open(&r, "[augment]\nsteps = flip rotate90 scale_intensity shift_intensity gaussian_noise\n"
                 "[augment.flip]\naxes = 0 1 2\nprobability = 0\n"
                 "[augment.rotate90]\nprobability = 0\n"
                 "[augment.scale_intensity]\nfactors = 1\nprobability = 0\n"
                 "[augment.shift_intensity]\noffsets = 1\nprobability = 0\n"
                 "[augment.gaussian_noise]\nprobability = 0\n");
    for (uint64_t n = 0; n < 20; n++)
        run_sample(&r, n, NULL);
    for (int v = 0; v < VOXELS; v++)
        ck_assert_float_eq(r.image[2 * v], v);
    run_close(&r);
}
END_TEST

/* Planes of 49 voxels, so that parts of noise begin within a quad. */
START_TEST(a_patch_changed_in_parts_is_the_patch_changed_at_once)
{
    static float whole[2 * VOXELS];
    const int64_t start[3] = { 0, 0, 0 };
    pons_sample sample = { .size = sizeof sample, .extent = { SIDE, SIDE, SIDE },
                           .map = { { 1, 0, 0, 0 }, { 0, -1, 0, 0 }, { 0, 0, -1, 0 } } };
    pons_rng draws = { .seed = 5 };
    pons_error err = PONS_ERROR_INIT;
    char records[512];
    run r;

    run_open(&r, "[augment]\nsteps = scale_intensity shift_intensity gaussian_noise\n"
                 "[augment.scale_intensity]\nfactors = 1\nprobability = 1\nchannel_wise = yes\n"
                 "[augment.shift_intensity]\noffsets = 1\nprobability = 1\nchannels = 1\n"
                 "[augment.gaussian_noise]\nprobability = 1\nchannels = 0\n");
    ck_assert_int_eq(augment_pointwise(&r.augment), 3);
    ck_assert_int_eq(augment_plan(&r.augment, &draws, &sample, records, &err), PONS_OK);
    for (int64_t planes = SIDE; planes > 0; planes--) {
        for (int64_t first = 0; first < SIDE; first += planes) {
            int64_t count = first + planes < SIDE ? planes : SIDE - first, at = first * SIDE * SIDE;
            pons_patch part = { .size = sizeof part, .extent = { count, SIDE, SIDE },
                                .channels = 2, .label_channels = 1, .image = r.image + 2 * at,
                                .label = r.label + at, .first = at };
            patch_cut(&r.packed, &sample, start, LOADER_PAD_ZERO, first, count, r.image, r.label);
            ck_assert_int_eq(augment_apply(&r.augment, 0, 3, records, &part, &err), PONS_OK);
        }
        if (planes == SIDE)
            memcpy(whole, r.image, sizeof whole);
        ck_assert_mem_eq(r.image, whole, sizeof whole);
    }
    ck_assert_float_ne(whole[0], SIDE * SIDE - 1);
    run_close(&r);
}
END_TEST

START_TEST(taking_a_step_out_leaves_the_numbers_of_the_others)
{
    float alone;
    run r;

    run_open(&r, "[augment]\nsteps = scale_intensity\n[augment.scale_intensity]\nfactors = 0.5\n"
                 "probability = 1\n");
    run_sample(&r, 4, NULL);
    alone = r.image[2 * 100];
    run_close(&r);
    run_open(&r, "[augment]\nsteps = flip scale_intensity\n[augment.flip]\naxes = 0\n"
                 "probability = 0\n[augment.scale_intensity]\nfactors = 0.5\nprobability = 1\n");
    run_sample(&r, 4, NULL);
    ck_assert_float_eq(r.image[2 * 100], alone);
    run_close(&r);
}
END_TEST

static const struct { const char *text, *phrase; } broken[] = {
    { "[augment]\nsteps = flip\n", "axes" },
    { "[augment]\nsteps = flip\n[augment.flip]\naxes = 0 0\n", "axes: found 0 twice" },
    { "[augment]\nsteps = flip\n[augment.flip]\naxes = 3\n", "axes" },
    { "[augment]\nsteps = flip\n[augment.flip]\naxes = 0\nprobability = 2\n", "probability" },
    { "[augment]\nsteps = flip\n[augment.flip]\naxes = 0\nchannels = 0\n", "cannot be restricted" },
    { "[augment]\nsteps = rotate90\n[augment.rotate90]\naxes = 1 1\n", "expected two different" },
    { "[augment]\nsteps = rotate90\n[augment.rotate90]\naxes = 1\n", "expected two different" },
    { "[augment]\nsteps = rotate90\n[augment.rotate90]\nmax_k = 4\n", "max_k" },
    { "[augment]\nsteps = scale_intensity\n", "factors" },
    { "[augment]\nsteps = scale_intensity\n[augment.scale_intensity]\nfactors = 1 2 3\n",
      "factors: found 3 numbers, expected one or two" },
    { "[augment]\nsteps = shift_intensity\n[augment.shift_intensity]\noffsets = 1\nchannels = 2\n",
      "found channel 2, expected 0 to 1" },
    { "[augment]\nsteps = gaussian_noise\n[augment.gaussian_noise]\nstd = -1\n", "std" },
};

START_TEST(broken_options_are_refused_and_named)
{
    pons_error err = PONS_ERROR_INIT;
    run r;

    ck_assert_int_eq(run_try(&r, broken[_i].text, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, broken[_i].phrase) != NULL, "'%s' lacks '%s'", err.text,
                  broken[_i].phrase);
    config_close(r.ini);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("augment");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, a_flip_along_one_axis_reverses_it);
    tcase_add_test(c, flipping_twice_is_nothing);
    tcase_add_test(c, each_axis_is_flipped_by_itself_at_its_rate);
    tcase_add_test(c, axes_flip_together_where_that_is_asked_for);
    tcase_add_test(c, a_quarter_turn_is_that_of_numpy);
    tcase_add_test(c, four_quarter_turns_are_nothing);
    tcase_add_test(c, a_turned_patch_keeps_its_extent);
    tcase_add_test(c, any_number_of_quarters_is_equally_likely);
    tcase_add_test(c, any_other_map_interpolates);
    tcase_add_test(c, scaling_multiplies_by_one_number_in_the_range);
    tcase_add_test(c, shifting_adds_a_number_to_the_named_channel);
    tcase_add_test(c, channel_wise_draws_a_number_for_each_channel);
    tcase_add_test(c, noise_has_its_mean_and_deviation);
    tcase_add_test(c, a_drawn_deviation_lies_below_std);
    tcase_add_test(c, a_probability_of_zero_changes_nothing);
    tcase_add_test(c, a_patch_changed_in_parts_is_the_patch_changed_at_once);
    tcase_add_test(c, taking_a_step_out_leaves_the_numbers_of_the_others);
    tcase_add_loop_test(c, broken_options_are_refused_and_named, 0,
                        sizeof broken / sizeof broken[0]);
    return suite_run();
}
