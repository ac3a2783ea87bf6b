/*
 * check_augment.c - random transforms of a sample, from the INI text to voxels.
 */
#include "data/loader/patch_crop.h"
#include "data/loader/patch_extract.h"
#include "data/transform/augment.h"

#include "support/dataset_maker.h"
#include "support/suite.h"

#include <math.h>

enum { SIDE = 7, VOXELS = SIDE * SIDE * SIDE };

typedef struct run {
    config *ini;
    pipeline *chain;
    augment augment;
    packed_case packed;
    int64_t extent[3];         /* of the patch */
    float image[2 * VOXELS], scratch[2 * VOXELS];
    uint8_t label[VOXELS];
} run;

/* Make a cube: channel 0 holds the voxel's index, channel 1 half of it, the label its parity. */
static void make_cube(packed_case *p)
{
    const int64_t extent[3] = { SIDE, SIDE, SIDE };
    sampling_spec wish = { SAMPLING_SETS_NONE, 0, 0 };
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
    return pipeline_open(r->ini, "augment", true, 2, &r->chain, err);
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
    pipeline_close(r->chain);
    config_close(r->ini);
}

/* Augment sample 'n' of the cube with its box at 'start' (NULL: 0). */
static void run_sample(run *r, uint64_t n, const int64_t *start)
{
    static const int64_t corner[3] = { 0, 0, 0 };
    const int64_t *e = r->extent;
    pons_sample sample = { .size = sizeof sample, .extent = { e[0], e[1], e[2] },
                           .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
    pons_patch patch = { .size = sizeof patch, .extent = { e[0], e[1], e[2] }, .channels = 2,
                         .label_channels = 1, .image = r->image, .label = r->label,
                         .scratch = r->scratch };
    pons_rng draws = { .seed = 3, .sample = n };
    pons_error err = PONS_ERROR_INIT;
    char records[4096];

    ck_assert_uint_le(augment_record_size(&r->augment), sizeof records);
    ck_assert_int_eq(augment_plan(&r->augment, &draws, &sample, records, &err), PONS_OK);
    patch_extract(&r->packed, &sample, start != NULL ? start : corner, LOADER_PAD_ZERO, 0, e[0],
                  r->image, r->label);
    ck_assert_int_eq(augment_apply(&r->augment, 0, augment_count(&r->augment), records, &patch,
                                   &err), PONS_OK);
}

static int number(int i, int j, int k)
{
    return (i * SIDE + j) * SIDE + k;
}

/* ---- spatial transforms ---------------------------------------------------------------------- */

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

/* Each voxel has its own number, and the label of its parity. */
static void assert_unchanged(const run *r)
{
    for (int v = 0; v < VOXELS; v++) {
        ck_assert_float_eq(r->image[2 * v], v);
        ck_assert_int_eq(r->label[v], v % 2);
    }
}

START_TEST(flipping_twice_restores_the_patch)
{
    run r;

    run_open(&r, "[augment]\nsteps = a b\n[augment.a]\nplugin = flip\naxes = 0 1 2\n"
                 "probability = 1\n[augment.b]\nplugin = flip\naxes = 2 1 0\nprobability = 1\n");
    run_sample(&r, 0, NULL);
    assert_unchanged(&r);
    run_close(&r);
}
END_TEST

START_TEST(each_axis_is_flipped_independently_at_its_rate)
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
    for (int i = 0; i < 8; i++) /* 7 degrees of freedom: the 99.99 % quantile is 29.9 */
        chi += (seen[i] - 100) * (seen[i] - 100) / 100.0;
    ck_assert_double_lt(chi, 29.9);
    run_close(&r);
}
END_TEST

START_TEST(axes_flip_together_with_that_option)
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

START_TEST(a_quarter_turn_equals_numpys)
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

START_TEST(four_quarter_turns_restore_the_patch)
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

/* A patch of 2 x 6 x 3 that is turned in the plane of axes 0 and 1 reads a box of 6 x 2 x 3. */
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

START_TEST(all_numbers_of_quarter_turns_are_equally_likely)
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
    for (int i = 1; i < 4; i++) { /* five standard deviations of 11.5 */
        ck_assert_int_gt(seen[i], 142);
        ck_assert_int_lt(seen[i], 258);
    }
    run_close(&r);
}
END_TEST

/*
 * A shift by half a voxel along k gives the mean of two neighbours; a zero follows the last voxel.
 */
START_TEST(an_affine_map_off_the_grid_interpolates)
{
    pons_sample sample = { .size = sizeof sample, .extent = { SIDE, SIDE, SIDE },
                           .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0.5 } } };
    const int64_t start[3] = { 0, 0, 0 };
    run r;

    run_open(&r, "[augment]\n");
    patch_extract(&r.packed, &sample, start, LOADER_PAD_ZERO, 0, SIDE, r.image, r.label);
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++) {
            double next = k + 1 < SIDE ? number(i, 2, k + 1) : 0;
            ck_assert_float_eq_tol(r.image[2 * number(i, 2, k)], (number(i, 2, k) + next) / 2,
                                   1e-4);
        }
    run_close(&r);
}
END_TEST

/* The label of a voxel whose nearest or heaviest neighbour lies beyond the case is left out. */
START_TEST(padding_is_left_out_where_a_map_reads_beyond_the_case)
{
    const double turn = 0.3;
    pons_sample sample = { .size = sizeof sample, .extent = { SIDE, SIDE, SIDE },
                           .linear_labels = _i != 0,
                           .map = { { cos(turn), -sin(turn), 0, 0 }, { sin(turn), cos(turn), 0, 0 },
                                    { 0, 0, 1, 0.7 } } };
    const int64_t start[3] = { 0, 0, 0 };
    uint8_t counted[SIDE * SIDE * SIDE];
    int out = 0;
    run r;

    run_open(&r, "[augment]\n");
    patch_extract(&r.packed, &sample, start, LOADER_PAD_ZERO, 0, SIDE, r.image, r.label);
    memcpy(counted, r.label, sizeof counted);
    patch_extract(&r.packed, &sample, start, LOADER_PAD_UNCOUNTED, 0, SIDE, r.image, r.label);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; k < SIDE; k++) {
                double middle = 0.5 * (SIDE - 1), d = i - middle, h = j - middle;
                double at[2] = { middle + cos(turn) * d - sin(turn) * h,
                                 middle + sin(turn) * d + cos(turn) * h };
                bool beyond = k == SIDE - 1 || fmin(at[0], at[1]) < -0.5
                              || fmax(at[0], at[1]) > SIDE - 0.5;

                if (beyond && _i == 0) /* the slice beyond the last is the nearest of the last */
                    ck_assert_int_eq(r.label[number(i, j, k)], TARGET_IGNORED);
                if (r.label[number(i, j, k)] != TARGET_IGNORED)
                    ck_assert_int_eq(r.label[number(i, j, k)], counted[number(i, j, k)]);
                else
                    ck_assert_int_eq(counted[number(i, j, k)], 0);
                out += r.label[number(i, j, k)] == TARGET_IGNORED;
            }
    ck_assert_int_ge(out, SIDE * SIDE);
    ck_assert_int_lt(out, SIDE * SIDE * SIDE / 2);
    run_close(&r);
}
END_TEST

/* Two scales whose product is 1 leave every voxel exactly where it was: one interpolation. */
START_TEST(steps_that_undo_each_other_do_not_blur)
{
    run r;

    run_open(&r, "[augment]\nsteps = a b\n[augment.a]\nplugin = affine\nprobability = 1\n"
                 "scale_range = 1 1\n[augment.b]\nplugin = affine\nprobability = 1\n"
                 "scale_range = -0.5 -0.5\n");
    run_sample(&r, 0, NULL);
    assert_unchanged(&r);
    run_close(&r);
}
END_TEST

/* A patch of 3 voxels at half the scale is as wide as 6 of the 7 voxels of the case. */
START_TEST(a_shrunk_patch_reads_the_case_beyond_its_border)
{
    const int64_t start[3] = { 2, 2, 2 };
    run r;

    run_open(&r, "[augment]\nsteps = affine\n[augment.affine]\nprobability = 1\n"
                 "scale_range = 1 1\n");
    for (int a = 0; a < 3; a++)
        r.extent[a] = 3;
    run_sample(&r, 0, start);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                ck_assert_float_eq(r.image[2 * ((i * 3 + j) * 3 + k)],
                                   number(1 + 2 * i, 1 + 2 * j, 1 + 2 * k));
    run_close(&r);
}
END_TEST

/* A patch of 2 x 5 x 3 that is mostly turned reads around the middle of a box of 5 x 2 x 3. */
START_TEST(a_turn_by_less_than_a_quarter_keeps_the_middle_of_the_box)
{
    const int64_t start[3] = { 1, 3, 2 };
    double sum = 0;
    run r;

    run_open(&r, "[augment]\nsteps = affine\n[augment.affine]\nprobability = 1\n"
                 "rotate_range = 0 0 0 0 1.5 1.5\n");
    r.extent[0] = 2;
    r.extent[1] = 5;
    r.extent[2] = 3;
    run_sample(&r, 0, start);
    for (int v = 0; v < 30; v++)
        sum += r.image[2 * v] / 30;
    ck_assert_double_eq_tol(sum, 49 * 3 + 7 * 3.5 + 3, 1e-3);
    run_close(&r);
}
END_TEST

/* Half way between voxels of classes 0 and 1 the nearest label decides, else the larger share. */
START_TEST(linear_labels_are_the_class_with_the_largest_share)
{
    run r;

    run_open(&r, "[augment]\nsteps = affine\n[augment.affine]\nprobability = 1\n"
                 "translate_range = 0 0 0.25 0.25 0.375 0.375\nlabel_mode = linear\n");
    run_sample(&r, 0, NULL);
    /* Voxels (j, k) and (j + 1, k + 1) have one class, the other two the other one. */
    double own = 0.75 * 0.625 + 0.25 * 0.375;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j + 1 < SIDE; j++)
            for (int k = 0; k + 1 < SIDE; k++)
                ck_assert_int_eq(r.label[number(i, j, k)],
                                 own > 0.5 ? number(i, j, k) % 2 : 1 - number(i, j, k) % 2);
    /* Beyond the last voxel three eighths lie outside. */
    ck_assert_int_eq(r.label[number(0, 0, 6)], 0);
    ck_assert_int_eq(r.label[number(0, 1, 6)], 1);
    run_close(&r);
}
END_TEST

/*
 * A row of four voxels along k with two regions: (1, 0), ignored, (1, 1), (0, 1). A shift weighs
 * the next voxel by 'moved', also behind the last one. Equal weights: the even voxel.
 */
static void assert_regions(double moved, loader_pad pad, const uint8_t expected[8])
{
    static const uint8_t target[8] = { 1, 0, 1, 1, 1, 1, 0, 1 };
    const int64_t extent[3] = { 1, 1, 4 }, start[3] = { 0, 0, 0 };
    pons_sample sample = { .size = sizeof sample, .extent = { 1, 1, 4 }, .linear_labels = true,
                           .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, moved } } };
    sampling_spec none = { SAMPLING_SETS_NONE, 0, 0 };
    pons_error err = PONS_ERROR_INIT;
    pons_case c = { .size = sizeof c };
    packed_case packed;
    float image[4];
    uint8_t label[8];

    ck_assert_int_eq(pons_volume_init(&c.image, PONS_F32, 1, extent, &err), PONS_OK);
    ck_assert_int_eq(pons_volume_init(&c.label, PONS_U8, 2, extent, &err), PONS_OK);
    ck_assert_int_eq(pons_volume_init(&c.valid, PONS_U8, 1, extent, &err), PONS_OK);
    memcpy(c.label.voxels, target, sizeof target);
    memcpy(c.valid.voxels, (const uint8_t[]){ 1, 0, 1, 1 }, 4);
    ck_assert_int_eq(packed_case_init(&packed, &c, &none, &err), PONS_OK);
    patch_extract(&packed, &sample, start, pad, 0, 1, image, label);
    for (int i = 0; i < 8; i++)
        ck_assert_msg(label[i] == expected[i], "shift %g: voxel %d, region %d is %d, expected %d",
                      moved, i / 2, i % 2, label[i], expected[i]);
    packed_case_clear(&packed);
}

/* Half of the weight decides for both regions of a voxel; below it the other voxels decide. */
START_TEST(interpolated_regions_are_ignored_together)
{
    enum { OFF = TARGET_IGNORED };

    assert_regions(0.25, LOADER_PAD_ZERO, (const uint8_t[]){ 1, 0, OFF, OFF, 1, 1, 0, 1 });
    assert_regions(0.5, LOADER_PAD_ZERO, (const uint8_t[]){ OFF, OFF, OFF, OFF, 1, 1, 0, 0 });
    assert_regions(0.75, LOADER_PAD_ZERO, (const uint8_t[]){ OFF, OFF, 1, 1, 0, 1, 0, 0 });
    assert_regions(0.25, LOADER_PAD_UNCOUNTED, (const uint8_t[]){ 1, 0, OFF, OFF, 1, 1, 0, 1 });
    assert_regions(0.75, LOADER_PAD_UNCOUNTED, (const uint8_t[]){ OFF, OFF, 1, 1, 0, 1, OFF, OFF });
}
END_TEST

/* Offsets in [-1, 1] have the variance 1/3; a Gaussian keeps (2 sqrt(pi) sigma)^-3 of it. */
START_TEST(elastic_fields_have_the_deviation_of_smoothed_offsets)
{
    enum { EDGE = 25, CENTRE = (12 * EDGE + 12) * EDGE + 12, COUNT = EDGE * EDGE * EDGE };
    double square = 0, expected = 60 * sqrt(pow(2 * sqrt(acos(-1)) * 4, -3) / 3);
    float *memory = malloc(6 * COUNT * sizeof *memory);
    run r;

    run_open(&r, "[augment]\nsteps = elastic\n[augment.elastic]\nprobability = 1\n"
                 "sigma_range = 4 4\nmagnitude_range = 60 60\n");
    for (uint64_t n = 0; n < 300; n++) {
        pons_sample sample = { .size = sizeof sample, .extent = { EDGE, EDGE, EDGE },
                               .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
        pons_displacement d = { .size = sizeof d, .extent = { EDGE, EDGE, EDGE },
                                .field = memory, .scratch = memory + 3 * COUNT };
        pons_rng draws = { .seed = 3, .sample = n };
        pons_error err = PONS_ERROR_INIT;
        char records[512];

        memset(memory, 0, 3 * COUNT * sizeof *memory);
        ck_assert_int_eq(augment_plan(&r.augment, &draws, &sample, records, &err), PONS_OK);
        ck_assert(sample.displaced);
        ck_assert_int_eq(augment_displace(&r.augment, records, &d, &err), PONS_OK);
        for (int i = 0; i < 3; i++)
            square += (double)memory[i * COUNT + CENTRE] * (double)memory[i * COUNT + CENTRE];
    }
    /* 900 numbers: the deviation is within a tenth, four times its own deviation. */
    ck_assert_double_eq_tol(sqrt(square / 900) / expected, 1, 0.1);
    free(memory);
    run_close(&r);
}
END_TEST

/* A quarter turn takes displacements along the first axis of the patch to the second. */
START_TEST(displacements_are_turned_by_the_steps_before)
{
    static float field[2][3 * VOXELS], scratch[3 * VOXELS];
    static const char *const before[] = { "", "rotate90 " };
    const pons_rng draws = { .seed = 3 };

    for (int n = 0; n < 2; n++) {
        pons_sample sample = { .size = sizeof sample, .extent = { SIDE, SIDE, SIDE },
                               .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
        pons_displacement d = { .size = sizeof d, .extent = { SIDE, SIDE, SIDE },
                                .field = field[n], .scratch = scratch };
        pons_error err = PONS_ERROR_INIT;
        char records[512], text[256];
        run r;

        memset(field[n], 0, sizeof field[n]);
        snprintf(text, sizeof text, "[augment]\nsteps = %selastic\n[augment.elastic]\n"
                 "probability = 1\n%s", before[n],
                 n == 0 ? "" : "[augment.rotate90]\nprobability = 1\nmax_k = 1\n");
        run_open(&r, text);
        ck_assert_int_eq(augment_plan(&r.augment, &draws, &sample, records, &err), PONS_OK);
        ck_assert_int_eq(augment_displace(&r.augment, records, &d, &err), PONS_OK);
        run_close(&r);
    }
    for (int v = 0; v < VOXELS; v++) {
        ck_assert_float_eq(field[1][v], field[0][VOXELS + v]);
        ck_assert_float_eq(field[1][VOXELS + v], -field[0][v]);
        ck_assert_float_eq(field[1][2 * VOXELS + v], field[0][2 * VOXELS + v]);
    }
}
END_TEST

/* ---- intensity transforms -------------------------------------------------------------------- */

/* The crop of sample 'n' of a case of that extent, for a patch of 'patch' voxels. */
static pons_sample crop_of(run *r, uint64_t n, const int64_t extent[3], const int64_t patch[3])
{
    pons_sample sample = { .size = sizeof sample, .extent = { patch[0], patch[1], patch[2] },
                           .case_extent = { extent[0], extent[1], extent[2] } };
    pons_rng draws = { .seed = 3, .sample = n };
    pons_error err = PONS_ERROR_INIT;
    char records[64];

    ck_assert_uint_le(augment_record_size(&r->augment), sizeof records);
    ck_assert_int_eq(augment_plan(&r->augment, &draws, &sample, records, &err), PONS_OK);
    for (int a = 0; a < 3; a++) {
        ck_assert_int_ge(sample.crop_start[a], 0);
        ck_assert_int_ge(sample.crop_extent[a], 1);
        ck_assert_int_le(sample.crop_start[a] + sample.crop_extent[a], extent[a]);
    }
    return sample;
}

/* The mean of uniform numbers from 'low' to 'high' is within 4.5 deviations. */
static void assert_uniform(double sum, int count, double low, double high)
{
    double deviation = (high - low) / sqrt(12.0 * count);

    ck_assert_double_le(fabs(sum / count - (low + high) / 2), 4.5 * deviation);
}

/* Boxes of at most half the picture always fit, so none is drawn twice. */
START_TEST(cut_boxes_have_shares_ratios_and_places_in_their_ranges)
{
    enum { COUNT = 2000 };
    const int64_t extent[] = { 1, 3000, 4000 }, patch[] = { 1, 8, 8 };
    double area = 0, ratio = 0, place[2] = { 0 };
    run r;

    run_open(&r, "[augment]\nsteps = random_resized_crop\n"
                 "[augment.random_resized_crop]\nscale = 0.08 0.5\n");
    for (uint64_t n = 0; n < COUNT; n++) {
        pons_sample s = crop_of(&r, n, extent, patch);
        double j = (double)s.crop_extent[1], k = (double)s.crop_extent[2];

        ck_assert_double_ge(j * k / 12e6, 0.0799);
        ck_assert_double_le(j * k / 12e6, 0.5005);
        ck_assert_double_ge(k / j, 0.749);
        ck_assert_double_le(k / j, 1.335);
        area += j * k / 12e6;
        ratio += log(k / j);
        place[0] += (double)s.crop_start[1] / (3000 - j);
        place[1] += (double)s.crop_start[2] / (4000 - k);
        ck_assert(s.crop_antialias);
    }
    assert_uniform(area, COUNT, 0.08, 0.5);
    assert_uniform(ratio, COUNT, log(3.0 / 4), log(4.0 / 3));
    assert_uniform(place[0], COUNT, 0, 1);
    assert_uniform(place[1], COUNT, 0, 1);
    run_close(&r);
}
END_TEST

/* A box of 3D also has a drawn ratio of i to the mean of j and k; a flat patch draws its slice. */
START_TEST(cut_boxes_of_volumes_keep_their_share)
{
    const int64_t extent[] = { 1000, 1200, 900 }, patch[] = { 8, 8, 8 }, slice[] = { 1, 8, 8 };
    double all = 1000.0 * 1200 * 900, sum = 0;
    run r;

    run_open(&r, "[augment]\nsteps = random_resized_crop\n"
                 "[augment.random_resized_crop]\nscale = 0.25 0.25\n");
    for (uint64_t n = 0; n < 400; n++) {
        pons_sample s = crop_of(&r, n, extent, patch), flat = crop_of(&r, n, extent, slice);
        double i = (double)s.crop_extent[0], j = (double)s.crop_extent[1];
        double k = (double)s.crop_extent[2];

        ck_assert_double_le(fabs(i * j * k / all - 0.25), 0.001);
        ck_assert_double_ge(k / j, 0.747);
        ck_assert_double_le(k / j, 1.338);
        ck_assert_double_ge(i / sqrt(j * k), 0.747);
        ck_assert_double_le(i / sqrt(j * k), 1.338);
        ck_assert_int_eq(flat.crop_extent[0], 1);
        sum += (double)flat.crop_start[0] / 999;
    }
    assert_uniform(sum, 400, 0, 1);
    run_close(&r);
}
END_TEST

/* torchvision's fallback: the middle, with the nearest allowed ratio. */
START_TEST(a_box_that_never_fits_is_the_middle)
{
    const int64_t tall[] = { 1, 300, 10 }, wide[] = { 1, 10, 301 }, patch[] = { 1, 8, 8 };
    run r;

    run_open(&r, "[augment]\nsteps = random_resized_crop\n"
                 "[augment.random_resized_crop]\nscale = 0.9 1\n");
    for (uint64_t n = 0; n < 20; n++) {
        pons_sample s = crop_of(&r, n, tall, patch);

        ck_assert_int_eq(s.crop_extent[1], 13); /* 10 / 0.75 */
        ck_assert_int_eq(s.crop_extent[2], 10);
        ck_assert_int_eq(s.crop_start[1], (300 - 13) / 2);
        s = crop_of(&r, n, wide, patch);
        ck_assert_int_eq(s.crop_extent[1], 10);
        ck_assert_int_eq(s.crop_extent[2], 13);
        ck_assert_int_eq(s.crop_start[2], (301 - 13) / 2);
    }
    run_close(&r);
}
END_TEST

START_TEST(a_box_beyond_the_case_is_an_error_of_the_plugin)
{
    const int64_t extent[] = { 4, 4, 4 };
    pons_sample sample = { .size = sizeof sample, .crop_start = { 0, 0, 1 },
                           .crop_extent = { SIDE, SIDE, SIDE } };
    pons_error err = PONS_ERROR_INIT;
    packed_case cut;
    run r;

    run_open(&r, "[augment]\nsteps = flip\n[augment.flip]\naxes = 0\n");
    ck_assert_int_eq(patch_crop(&r.packed, &sample, extent, &cut, &err), PONS_PLUGIN);
    ck_assert_ptr_nonnull(strstr(err.text, "7 voxels from voxel 1 of axis 2, expected a box in "
                                           "the 7 voxels"));
    run_close(&r);
}
END_TEST

/* Labels of a box that is shrunk are those of the voxels in its middle. */
START_TEST(labels_of_a_cut_box_are_the_nearest)
{
    const int64_t extent[] = { 1, 1, 3 };
    const pons_sample sample = { .size = sizeof sample, .crop_start = { 2, 3, 0 },
                                 .crop_extent = { 1, 1, SIDE } };
    pons_error err = PONS_ERROR_INIT;
    packed_case cut;
    run r;

    run_open(&r, "[augment]\nsteps = flip\n[augment.flip]\naxes = 0\n");
    ck_assert_int_eq(patch_crop(&r.packed, &sample, extent, &cut, &err), PONS_OK);
    ck_assert_int_eq(cut.target[0], number(2, 3, 1) % 2);
    ck_assert_int_eq(cut.target[1], number(2, 3, 3) % 2);
    ck_assert_int_eq(cut.target[2], number(2, 3, 5) % 2);
    packed_case_clear(&cut);
    run_close(&r);
}
END_TEST

START_TEST(scaling_multiplies_by_a_factor_in_the_range)
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

START_TEST(channel_wise_draws_one_factor_per_channel)
{
    run r;

    run_open(&r, "[augment]\nsteps = shift_intensity\n[augment.shift_intensity]\noffsets = 1\n"
                 "probability = 1\nchannel_wise = yes\n");
    run_sample(&r, 5, NULL);
    ck_assert(r.image[0] != r.image[1]);
    run_close(&r);
}
END_TEST

/* For 686 draws of mean 2 and deviation 0.5 the mean deviates by 0.019, the variance by 0.0135. */
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

START_TEST(the_drawn_noise_deviation_is_at_most_std)
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

    run_open(&r, "[augment]\nsteps = flip rotate90 scale_intensity shift_intensity gaussian_noise "
                 "brightness contrast adjust_contrast gaussian_smooth gaussian_sharpen "
                 "low_resolution bias_field coarse_dropout channel_dropout affine zoom "
                 "elastic\n"
                 "[augment.affine]\nscale_range = 0.5\nprobability = 0\n"
                 "[augment.zoom]\nprobability = 0\n[augment.elastic]\nprobability = 0\n"
                 "[augment.flip]\naxes = 0 1 2\nprobability = 0\n"
                 "[augment.rotate90]\nprobability = 0\n"
                 "[augment.scale_intensity]\nfactors = 1\nprobability = 0\n"
                 "[augment.shift_intensity]\noffsets = 1\nprobability = 0\n"
                 "[augment.gaussian_noise]\nprobability = 0\n"
                 "[augment.brightness]\nprobability = 0\n"
                 "[augment.contrast]\nprobability = 0\n"
                 "[augment.adjust_contrast]\nprobability = 0\n"
                 "[augment.gaussian_smooth]\nprobability = 0\n"
                 "[augment.gaussian_sharpen]\nprobability = 0\n"
                 "[augment.low_resolution]\nprobability = 0\n"
                 "[augment.bias_field]\nprobability = 0\n"
                 "[augment.coarse_dropout]\nspatial_size = 2\nprobability = 0\n"
                 "[augment.channel_dropout]\nprobability = 0\n");
    for (uint64_t n = 0; n < 20; n++)
        run_sample(&r, n, NULL);
    for (int v = 0; v < VOXELS; v++)
        ck_assert_float_eq(r.image[2 * v], v);
    run_close(&r);
}
END_TEST

/* The range 0.5 .. 3 has a fifth of its numbers below 1, yet half of the factors are. */
START_TEST(factors_below_and_above_one_are_equally_likely)
{
    int below = 0;
    run r;

    run_open(&r, "[augment]\nsteps = brightness\n[augment.brightness]\nfactors = 0.5 3\n"
                 "probability = 1\n");
    for (uint64_t n = 0; n < 400; n++) {
        run_sample(&r, n, NULL);
        double f = r.image[2 * 342] / 342.0;
        ck_assert_double_ge(f, 0.5);
        ck_assert_double_le(f, 3);
        below += f < 1;
    }
    ck_assert_int_gt(below, 150); /* five standard deviations of 10 */
    ck_assert_int_lt(below, 250);
    run_close(&r);
}
END_TEST

START_TEST(brightness_adds_a_normal_number_to_each_channel)
{
    double sum = 0, square = 0;
    run r;

    run_open(&r, "[augment]\nsteps = brightness\n[augment.brightness]\nfactors = 1 1\nmu = 3\n"
                 "sigma = 2\nprobability = 1\n");
    for (uint64_t n = 0; n < 200; n++) {
        run_sample(&r, n, NULL);
        ck_assert(r.image[0] != r.image[1]);
        for (int c = 0; c < 2; c++) {
            sum += r.image[c];
            square += r.image[c] * r.image[c];
        }
    }
    double mean = sum / 400, variance = square / 400 - mean * mean;
    ck_assert_double_eq_tol(mean, 3, 0.5); /* five standard deviations of 0.1 */
    ck_assert_double_eq_tol(variance, 4, 1.5);
    run_close(&r);
}
END_TEST

/* Half of the channels are drawn, so each of them is blank in a third of the patches or less. */
START_TEST(a_channel_is_dropped_but_never_all)
{
    int blank[2] = { 0 };
    run r;

    run_open(&r, "[augment]\nsteps = channel_dropout\n[augment.channel_dropout]\n"
                 "probability = 1\n");
    for (uint64_t n = 0; n < 400; n++) {
        run_sample(&r, n, NULL);
        bool first = r.image[2 * 100] == 0, second = r.image[2 * 100 + 1] == 0;
        ck_assert(!first || !second);
        blank[0] += first;
        blank[1] += second;
    }
    for (int c = 0; c < 2; c++) { /* 3/8 of 400, five standard deviations of 9.7 */
        ck_assert_int_gt(blank[c], 101);
        ck_assert_int_lt(blank[c], 199);
    }
    run_close(&r);
}
END_TEST

START_TEST(filled_boxes_have_values_within_the_limits_of_the_channel)
{
    int changed = 0;
    run r;

    run_open(&r, "[augment]\nsteps = coarse_dropout\n[augment.coarse_dropout]\nholes = 2\n"
                 "spatial_size = 2 3 1\nmax_spatial_size = 4 3 2\nprobability = 1\n");
    run_sample(&r, 1, NULL);
    for (int v = 0; v < VOXELS; v++) {
        changed += r.image[2 * v] != (float)v;
        ck_assert_float_ge(r.image[2 * v], 0);
        ck_assert_float_le(r.image[2 * v], VOXELS - 1);
    }
    ck_assert_int_ge(changed, 6);
    ck_assert_int_le(changed, 2 * 4 * 3 * 2);
    run_close(&r);
}
END_TEST

/* Planes of 49 voxels let parts of noise begin within a group of four random numbers. */
START_TEST(parts_of_a_patch_are_augmented_like_the_whole)
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
            patch_extract(&r.packed, &sample, start, LOADER_PAD_ZERO, first, count, r.image,
                          r.label);
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

START_TEST(removing_a_step_keeps_the_random_numbers_of_the_others)
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
    { "[augment]\nsteps = rotate90\n[augment.rotate90]\naxes = 1 1\n",
      "axes: found 1 twice, expected two different ones" },
    { "[augment]\nsteps = rotate90\n[augment.rotate90]\naxes = 1\n",
      "axes = '1': found 1, expected 2 integers from 0 to 2" },
    { "[augment]\nsteps = rotate90\n[augment.rotate90]\nmax_k = 4\n", "max_k" },
    { "[augment]\nsteps = scale_intensity\n", "factors" },
    { "[augment]\nsteps = scale_intensity\n[augment.scale_intensity]\nfactors = 1 2 3\n",
      "factors = '1 2 3': found 3, expected 1 or 2 numbers" },
    { "[augment]\nsteps = shift_intensity\n[augment.shift_intensity]\noffsets = 1\nchannels = 2\n",
      "found channel 2, expected 0 to 1" },
    { "[augment]\nsteps = gaussian_noise\n[augment.gaussian_noise]\nstd = -1\n", "std" },
    { "[augment]\nsteps = brightness\n[augment.brightness]\nfactors = 2 1\n",
      "factors: found 2 before 1, expected the lower end first" },
    { "[augment]\nsteps = contrast\n[augment.contrast]\nfactors = 1\n", "expected 2 numbers" },
    { "[augment]\nsteps = adjust_contrast\n[augment.adjust_contrast]\ngamma = 0 1\n", "gamma" },
    { "[augment]\nsteps = gaussian_smooth\n[augment.gaussian_smooth]\nsigma_y = 1 0.5\n",
      "sigma_y: found 1 before 0.5" },
    { "[augment]\nsteps = gaussian_sharpen\n[augment.gaussian_sharpen]\nsigma2_z = 1 0.5\n",
      "sigma2_z: found 1 before 0.5" },
    { "[augment]\nsteps = low_resolution\n[augment.low_resolution]\nzoom_range = 0.5 2\n",
      "zoom_range" },
    { "[augment]\nsteps = bias_field\n[augment.bias_field]\ndegree = 6\n", "degree" },
    { "[augment]\nsteps = coarse_dropout\n", "spatial_size" },
    { "[augment]\nsteps = affine\n[augment.affine]\nrotate_range = 1 2 3 4\n",
      "rotate_range: found 4 numbers, expected 1, 2, 3 or 6" },
    { "[augment]\nsteps = affine\n[augment.affine]\ntranslate_range = 1 2 2 1 3 4\n",
      "translate_range: found 2 before 1, expected the lower end first" },
    { "[augment]\nsteps = affine\n[augment.affine]\nscale_range = 1\n",
      "scale_range: found -1, expected more than -1" },
    { "[augment]\nsteps = affine\n[augment.affine]\nchannels = 0\n", "cannot be restricted" },
    { "[augment]\nsteps = zoom\n[augment.zoom]\nmin_zoom = 1 1 1\n",
      "max_zoom: found 1 numbers, expected 3 as in min_zoom" },
    { "[augment]\nsteps = zoom\n[augment.zoom]\nmin_zoom = 1.2\n",
      "max_zoom: found 1.1, expected at least min_zoom, 1.2" },
    { "[augment]\nsteps = elastic\n[augment.elastic]\nsigma_range = 8 5\n", "sigma_range" },
    { "[augment]\nsteps = coarse_dropout\n[augment.coarse_dropout]\nspatial_size = 4\n"
      "max_spatial_size = 5 3 5\n",
      "max_spatial_size: found 3 along j, expected at least spatial_size, 4" },
    { "[augment]\nsteps = coarse_dropout\n[augment.coarse_dropout]\nspatial_size = 4\n"
      "holes = 3\nmax_holes = 2\n", "max_holes: found 2, expected 0 or at least holes, 3" },
    { "[augment]\nsteps = random_resized_crop\n[augment.random_resized_crop]\nscale = 0.5 0.2\n",
      "scale: found 0.5 before 0.2, expected the lower end first" },
    { "[augment]\nsteps = random_resized_crop\n[augment.random_resized_crop]\nscale = 0 1\n",
      "scale: found 0, expected more than 0" },
    { "[augment]\nsteps = random_resized_crop\n[augment.random_resized_crop]\nratio = 2 1\n",
      "ratio: found 2 before 1" },
    { "[augment]\nsteps = random_resized_crop b\n[augment.b]\nplugin = random_resized_crop\n",
      "'random_resized_crop' and 'b' both choose the box of a patch" },
    { "[augment]\nsteps = flip\n[augment.flip]\naxes = 0\ncases = validation\n",
      "steps of [augment] change cases of training alone" },
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
    tcase_add_test(c, flipping_twice_restores_the_patch);
    tcase_add_test(c, each_axis_is_flipped_independently_at_its_rate);
    tcase_add_test(c, axes_flip_together_with_that_option);
    tcase_add_test(c, a_quarter_turn_equals_numpys);
    tcase_add_test(c, four_quarter_turns_restore_the_patch);
    tcase_add_test(c, a_turned_patch_keeps_its_extent);
    tcase_add_test(c, all_numbers_of_quarter_turns_are_equally_likely);
    tcase_add_test(c, an_affine_map_off_the_grid_interpolates);
    tcase_add_loop_test(c, padding_is_left_out_where_a_map_reads_beyond_the_case, 0, 2);
    tcase_add_test(c, steps_that_undo_each_other_do_not_blur);
    tcase_add_test(c, a_shrunk_patch_reads_the_case_beyond_its_border);
    tcase_add_test(c, a_turn_by_less_than_a_quarter_keeps_the_middle_of_the_box);
    tcase_add_test(c, linear_labels_are_the_class_with_the_largest_share);
    tcase_add_test(c, interpolated_regions_are_ignored_together);
    tcase_add_test(c, elastic_fields_have_the_deviation_of_smoothed_offsets);
    tcase_add_test(c, displacements_are_turned_by_the_steps_before);
    tcase_add_test(c, cut_boxes_have_shares_ratios_and_places_in_their_ranges);
    tcase_add_test(c, cut_boxes_of_volumes_keep_their_share);
    tcase_add_test(c, a_box_that_never_fits_is_the_middle);
    tcase_add_test(c, a_box_beyond_the_case_is_an_error_of_the_plugin);
    tcase_add_test(c, labels_of_a_cut_box_are_the_nearest);
    tcase_add_test(c, scaling_multiplies_by_a_factor_in_the_range);
    tcase_add_test(c, shifting_adds_a_number_to_the_named_channel);
    tcase_add_test(c, channel_wise_draws_one_factor_per_channel);
    tcase_add_test(c, noise_has_its_mean_and_deviation);
    tcase_add_test(c, the_drawn_noise_deviation_is_at_most_std);
    tcase_add_test(c, a_probability_of_zero_changes_nothing);
    tcase_add_test(c, factors_below_and_above_one_are_equally_likely);
    tcase_add_test(c, brightness_adds_a_normal_number_to_each_channel);
    tcase_add_test(c, a_channel_is_dropped_but_never_all);
    tcase_add_test(c, filled_boxes_have_values_within_the_limits_of_the_channel);
    tcase_add_test(c, parts_of_a_patch_are_augmented_like_the_whole);
    tcase_add_test(c, removing_a_step_keeps_the_random_numbers_of_the_others);
    tcase_add_loop_test(c, broken_options_are_refused_and_named, 0,
                        sizeof broken / sizeof broken[0]);
    return suite_run();
}
