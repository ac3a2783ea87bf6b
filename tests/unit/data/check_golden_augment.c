/*
 * check_golden_augment.c - random transforms with given parameters against the values of MONAI and
 * nnU-Net. A range of one number gives the parameter; records give what no range can.
 */
#include "support/data/golden_arrays.h"
#include "support/tolerance.h"

#include "data/loader/patch_extract.h"
#include "data/transform/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../plugins/transforms/random/bias_field.h"
#include "../../../plugins/transforms/random/coarse_dropout.h"
#include "../../../plugins/transforms/random/color_jitter.h"
#include "../../../plugins/transforms/random/gaussian_filter.h"
#include "../../../plugins/transforms/random/unit_power.h"

/* A patch that is a golden array. */
typedef struct golden_patch {
    pons_patch patch;
    config *ini;
    pipeline *steps;
    augment augment;
    void *records;
} golden_patch;

static void patch_open(golden_patch *g, const safetensor *t, const char *ini)
{
    *g = (golden_patch){ .patch = { .size = sizeof g->patch, .channels = (int)t->extent[0],
                                    .extent = { t->extent[1], t->extent[2], t->extent[3] } } };
    g->patch.image = channels_last(t);
    g->patch.scratch = malloc(2 * (size_t)t->count * sizeof *g->patch.scratch);
    g->ini = open_ini(ini);
    MUST(pipeline_open(g->ini, "augment", true, g->patch.channels, &g->steps, &error));
    MUST(augment_init(&g->augment, g->steps, &error));
    g->records = calloc(1, augment_record_size(&g->augment) + 1);
}

static void patch_plan(golden_patch *g, pons_sample *sample)
{
    const int64_t *e = g->patch.extent;
    const pons_rng draws = { .seed = 1 };

    *sample = (pons_sample){ .size = sizeof *sample, .extent = { e[0], e[1], e[2] },
                             .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
    MUST(augment_plan(&g->augment, &draws, sample, g->records, &error));
}

static void patch_apply(golden_patch *g)
{
    MUST(augment_apply(&g->augment, 0, augment_count(&g->augment), g->records, &g->patch, &error));
}

static void patch_close(golden_patch *g)
{
    free(g->records);
    augment_clear(&g->augment);
    pipeline_close(g->steps);
    config_close(g->ini);
    free(g->patch.image);
    free(g->patch.scratch);
}

/* ---- values ---------------------------------------------------------------------------------- */

#define MONAI "transforms_more.safetensors", "image"
#define NNUNET "nnunet/augment.safetensors", "image"

static const struct value_case {
    const char *file, *source, *expected_file, *name, *plugin, *options;
} value_cases[] = {
    { MONAI, NULL, "gaussian_smooth_1.0", "gaussian_smooth",
      "sigma_x = 1 1\nsigma_y = 1 1\nsigma_z = 1 1\n" },
    { MONAI, NULL, "gaussian_smooth_axes", "gaussian_smooth",
      "sigma_x = 0.5 0.5\nsigma_y = 1.5 1.5\nsigma_z = 1 1\n" },
    { MONAI, NULL, "gaussian_smooth_0.25", "gaussian_smooth",
      "sigma_x = 0.25 0.25\nsigma_y = 0.25 0.25\nsigma_z = 0.25 0.25\n" },
    { MONAI, NULL, "adjust_contrast_0.7", "adjust_contrast", "gamma = 0.7 0.7\n" },
    { MONAI, NULL, "adjust_contrast_2.5", "adjust_contrast", "gamma = 2.5 2.5\n" },
    { MONAI, NULL, "adjust_contrast_1.4", "adjust_contrast",
      "gamma = 1.4 1.4\ninvert_image = yes\n" },
    { MONAI, NULL, "adjust_contrast_0.8", "adjust_contrast",
      "gamma = 0.8 0.8\nretain_stats = yes\n" },
    { MONAI, NULL, "adjust_contrast_1.3", "adjust_contrast",
      "gamma = 1.3 1.3\ninvert_image = yes\nretain_stats = yes\nchannel_wise = yes\n" },
    { MONAI, NULL, "low_resolution_0.5", "low_resolution", "zoom_range = 0.5 0.5\n" },
    { MONAI, NULL, "low_resolution_0.77", "low_resolution", "zoom_range = 0.77 0.77\n" },
    { MONAI, "sharpen.safetensors", "sharpen_0", "gaussian_sharpen",
      "sigma1_x = 0.7 0.7\nsigma1_y = 0.7 0.7\nsigma1_z = 0.7 0.7\nsigma2_x = 0.6 0.6\n"
      "sigma2_y = 0.6 0.6\nsigma2_z = 0.6 0.6\nalpha = 12 12\n" },
    { MONAI, "sharpen.safetensors", "sharpen_1", "gaussian_sharpen",
      "sigma1_x = 0.5 0.5\nsigma1_y = 0.9 0.9\nsigma1_z = 1 1\nsigma2_x = 0.5\n"
      "sigma2_y = 0.55 0.55\nsigma2_z = 0.75 0.75\nalpha = 20 20\n" },
    { NNUNET, NULL, "contrast/image", "contrast", "factors = 1.2 1.2\n" },
    { NNUNET, NULL, "gamma/image", "adjust_contrast",
      "gamma = 0.8 0.8\nretain_stats = yes\nchannel_wise = yes\n" },
    { NNUNET, NULL, "gamma_inverted/image", "adjust_contrast",
      "gamma = 1.3 1.3\ninvert_image = yes\nretain_stats = yes\nchannel_wise = yes\n" },
    { NNUNET, NULL, "blur/image", "gaussian_smooth",
      "sigma_x = 0.8 0.8\nsigma_y = 0.8 0.8\nsigma_z = 0.8 0.8\napprox = sampled\n"
      "padding_mode = reflect\n" },
    { NNUNET, NULL, "low_resolution/image", "low_resolution",
      "zoom_range = 0.6 0.6\ndownsample_mode = nearest-exact\nchannel_wise = yes\n" },
};

START_TEST(values_equal_those_of_monai_and_nnunet)
{
    const struct value_case *v = &value_cases[_i];
    safetensors *arrays = open_arrays(v->file);
    safetensors *expected = open_arrays(v->expected_file != NULL ? v->expected_file : v->file);
    pons_sample sample;
    golden_patch g;
    char ini[512];

    snprintf(ini, sizeof ini, "[augment]\nsteps = %s\n[augment.%s]\nprobability = 1\n%s",
             v->plugin, v->plugin, v->options);
    patch_open(&g, find_array(arrays, v->source), ini);
    patch_plan(&g, &sample);
    patch_apply(&g);
    assert_near(g.patch.image, find_array(expected, v->name), IMAGE_OF_RANGE, v->name);
    patch_close(&g);
    safetensors_close(expected);
    safetensors_close(arrays);
}
END_TEST

START_TEST(powers_are_as_near_as_promised)
{
    static const float exponents[] = { 0.001f, 0.1f, 0.5f, 0.7f, 1, 1.5f, 2, 4.5f, 30, 1000 };
    float exponent = exponents[_i];

    ck_assert_double_eq(0, (double)unit_power(0, exponent));
    ck_assert_double_eq(1, (double)unit_power(1, exponent));
    for (int n = 1; n <= 1 << 20; n += n < 4096 ? 1 : 61) {
        float x = (float)n * 0x1p-20f;

        ck_assert_double_eq_tol((double)unit_power(x, exponent), pow((double)x, (double)exponent),
                                0x1p-23);
    }
    for (float x = 1; x > FLT_MIN; x *= 0.7f)
        ck_assert_double_eq_tol((double)unit_power(x, exponent), pow((double)x, (double)exponent),
                                0x1p-23);
}
END_TEST

START_TEST(a_bias_field_of_given_coefficients_equals_monais)
{
    static const float coefficient[] = {
        0.075019091f, 0.129442766f, 0.105137140f, -0.004958562f, 0.010033257f,
        0.124710687f, -0.048946939f, 0.114245683f, 0.109413885f, 0.043586992f,
        0.010606485f, 0.005685122f, 0.000973918f, 0.039015260f, 0.050909653f, 0.060699470f,
        0.149100050f, 0.108532384f, 0.074435845f, 0.147792026f
    };
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    golden_patch g;
    bias_record *r;

    patch_open(&g, find_array(arrays, "image"), "[augment]\nsteps = bias_field\n");
    r = g.records;
    r->wanted = 1;
    r->degree = 3;
    memcpy(r->coefficient, coefficient, sizeof coefficient);
    patch_apply(&g);
    assert_near(g.patch.image, find_array(arrays, "bias_field"), IMAGE_OF_RANGE, "bias_field");
    patch_close(&g);
    safetensors_close(arrays);
}
END_TEST

static const struct { const char *name, *options; } dropouts[] = {
    { "coarse_dropout", "fill_value = 7.5\n" },
    { "coarse_dropout_outside", "fill_value = -1\ndropout_holes = no\n" },
};

START_TEST(given_boxes_are_dropped_as_by_monai)
{
    static const dropout_record boxes = {
        .count = 3, .box = { { { 1, 2, 3 }, { 4, 5, 6 } }, { { 8, 0, 0 }, { 5, 5, 11 } },
                             { { 0, 10, 9 }, { 3, 6, 2 } } }
    };
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    golden_patch g;
    char ini[256];

    snprintf(ini, sizeof ini, "[augment]\nsteps = coarse_dropout\n[augment.coarse_dropout]\n"
             "spatial_size = 3\n%s", dropouts[_i].options);
    patch_open(&g, find_array(arrays, "image"), ini);
    memcpy(g.records, &boxes, sizeof boxes);
    patch_apply(&g);
    assert_near(g.patch.image, find_array(arrays, dropouts[_i].name), 0, dropouts[_i].name);
    patch_close(&g);
    safetensors_close(arrays);
}
END_TEST

#define JITTER_ALL { 1.2F, 0.6F, 1.25F, -0.04F }

static const struct { const char *name; jitter_record record; } jitters[] = {
    { "color_b", { true, { 0, 1, 2, 3 }, { 1.2F, 1, 1, 0 } } },
    { "color_c", { true, { 0, 1, 2, 3 }, { 1, 0.6F, 1, 0 } } },
    { "color_s", { true, { 0, 1, 2, 3 }, { 1, 1, 1.25F, 0 } } },
    { "color_h", { true, { 0, 1, 2, 3 }, { 1, 1, 1, -0.04F } } },
    { "color_b_c_s_h", { true, { 0, 1, 2, 3 }, JITTER_ALL } },
    { "color_h_s_c_b", { true, { 3, 2, 1, 0 }, JITTER_ALL } },
};

/* 'normalised': values are scaled by mean and std, which changes neither record nor result. */
static void assert_jitter(int i, bool normalised)
{
    static const float mean[] = { 0.485F, 0.456F, 0.406F }, std[] = { 0.229F, 0.224F, 0.225F };
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    safetensor picture = picture_of(arrays, "picture");
    golden_patch g;

    patch_open(&g, &picture, normalised ? "[augment]\nsteps = color_jitter\n"
               "[augment.color_jitter]\nmean = 0.485 0.456 0.406\nstd = 0.229 0.224 0.225\n"
               : "[augment]\nsteps = color_jitter\n");
    for (int64_t n = 0; normalised && n < picture.count; n++)
        g.patch.image[n] = (g.patch.image[n] - mean[n % 3]) / std[n % 3];
    memcpy(g.records, &jitters[i].record, sizeof jitters[i].record);
    patch_apply(&g);
    for (int64_t n = 0; normalised && n < picture.count; n++)
        g.patch.image[n] = g.patch.image[n] * std[n % 3] + mean[n % 3];
    assert_near(g.patch.image, find_array(arrays, jitters[i].name), COLOR_OF_RANGE,
                jitters[i].name);
    patch_close(&g);
    safetensors_close(arrays);
}

START_TEST(colours_are_changed_as_by_torchvision)
{
    assert_jitter(_i, false);
    assert_jitter(_i, true);
}
END_TEST

/* Each of the 24 orders is drawn; factors lie in the ranges that torchvision makes of numbers. */
START_TEST(orders_and_factors_of_colours_are_drawn_as_by_torchvision)
{
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    safetensor picture = picture_of(arrays, "picture");
    int seen[256] = { 0 }, orders = 0;
    float low[] = { 2, 2, 2, 2 }, high[] = { -2, -2, -2, -2 };
    pons_sample sample;
    golden_patch g;

    patch_open(&g, &picture, "[augment]\nsteps = color_jitter\n[augment.color_jitter]\n"
               "brightness = 0.25\ncontrast = 1.5\nsaturation = 0.5 0.75\nhue = 0.04\n");
    for (int n = 0; n < 2000; n++) {
        const jitter_record *r = g.records;
        const pons_rng draws = { .seed = 1, .sample = (uint64_t)n };
        int order;
        sample = (pons_sample){ .size = sizeof sample, .extent = { 1, 24, 30 } };
        MUST(augment_plan(&g.augment, &draws, &sample, g.records, &error));
        ck_assert(r->wanted);
        order = (r->order[0] * 4 + r->order[1]) * 4 + r->order[2];
        orders += seen[order]++ == 0;
        for (int i = 0; i < JITTER_COUNT; i++) {
            low[i] = fminf(low[i], r->factor[i]);
            high[i] = fmaxf(high[i], r->factor[i]);
        }
    }
    ck_assert_int_eq(orders, 24);
    for (int i = 0; i < 256; i++)
        ck_assert(seen[i] == 0 || (seen[i] > 40 && seen[i] < 140)); /* 83 on average, deviation 9 */
    ck_assert(low[0] >= 0.75F && low[0] < 0.752F && high[0] <= 1.25F && high[0] > 1.248F);
    ck_assert(low[1] >= 0 && low[1] < 0.01F && high[1] <= 2.5F && high[1] > 2.49F);
    ck_assert(low[2] >= 0.5F && low[2] < 0.501F && high[2] <= 0.75F && high[2] > 0.749F);
    ck_assert(low[3] >= -0.04F && low[3] < -0.039F && high[3] <= 0.04F && high[3] > 0.039F);
    patch_close(&g);
    safetensors_close(arrays);
}
END_TEST

/* Each of two channels is what a grey picture of it becomes: f x, then f x + (1 - f) mean. */
START_TEST(two_channels_are_grey_each)
{
    static const jitter_record record = { true, { 0, 1, 2, 3 }, { 0.5F, 0.6F, 1.25F, -0.04F } };
    enum { VOXELS = 24 * 30 };
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    safetensor pair = picture_of(arrays, "picture");
    double half[2][VOXELS], mean[2] = { 0, 0 };
    golden_patch g;

    pair.extent[0] = 2;
    pair.count = 2 * VOXELS;
    patch_open(&g, &pair, "[augment]\nsteps = color_jitter\n");
    for (int n = 0; n < 2 * VOXELS; n++) {
        half[n % 2][n / 2] = 0.5 * (double)g.patch.image[n];
        mean[n % 2] += half[n % 2][n / 2] / VOXELS;
    }
    memcpy(g.records, &record, sizeof record);
    patch_apply(&g);
    for (int n = 0; n < 2 * VOXELS; n++)
        ck_assert_double_eq_tol((double)g.patch.image[n],
                                0.6 * half[n % 2][n / 2] + 0.4 * mean[n % 2], COLOR_OF_RANGE);
    patch_close(&g);
    safetensors_close(arrays);
}
END_TEST

/* ---- positions ------------------------------------------------------------------------------- */

/* A case of golden arrays; 'label' may be NULL, and 'more' is added to its ids. */
static void pack_arrays(packed_case *p, const safetensor *image, const safetensor *label, int more)
{
    const sampling_spec spec = { SAMPLING_SETS_NONE, 0, 0 };
    float *values = channels_last(image), *ids = label != NULL ? channels_last(label) : NULL;
    pons_case c = { .size = sizeof c };

    MUST(pons_volume_init(&c.image, PONS_F32, (int)image->extent[0], image->extent + 1, &error));
    memcpy(c.image.voxels, values, (size_t)image->count * sizeof *values);
    if (label != NULL)
        MUST(pons_volume_init(&c.label, PONS_U8, 1, label->extent + 1, &error));
    for (int64_t n = 0; label != NULL && n < label->count; n++)
        ((uint8_t *)c.label.voxels)[n] = (uint8_t)((int)ids[n] + more);
    MUST(packed_case_init(p, &c, &spec, &error));
    free(values);
    free(ids);
}

/* The position that a voxel of a patch of the same extent is read from. */
static void position_of(const pons_sample *s, int64_t voxel, double at[3])
{
    const int64_t *e = s->extent;
    int64_t index[] = { voxel / (e[1] * e[2]), voxel / e[2] % e[1], voxel % e[2] };

    for (int i = 0; i < 3; i++) {
        at[i] = s->map[i][3] + 0.5 * (double)(e[i] - 1);
        for (int j = 0; j < 3; j++)
            at[i] += s->map[i][j] * ((double)index[j] - 0.5 * (double)(e[j] - 1));
        if (s->displacement != NULL)
            at[i] += (double)s->displacement[i * e[0] * e[1] * e[2] + voxel];
    }
}

/* Whether the position is at most 'margin' outside of the centres of the outer voxels. */
static bool is_inside(const pons_sample *s, int64_t voxel, double margin)
{
    double at[3];

    position_of(s, voxel, at);
    for (int i = 0; i < 3; i++)
        if (at[i] < -margin || at[i] > (double)(s->extent[i] - 1) + margin)
            return false;
    return true;
}

/* Image and label that a sample reads of the whole volume of transforms_more. */
typedef struct reading {
    float image[13 * 16 * 11];
    uint8_t label[13 * 16 * 11];
} reading;

static void read_volume(const safetensors *arrays, const pons_sample *sample, loader_pad pad,
                        reading *out)
{
    const int64_t start[3] = { 0, 0, 0 };
    packed_case p;

    pack_arrays(&p, find_array(arrays, "image"), find_array(arrays, "label"), 0);
    patch_extract(&p, sample, start, pad, 0, sample->extent[0], out->image, out->label);
    packed_case_clear(&p);
}

/* Compare images where the position lies at most 'margin' outside of the outer voxels' centres. */
static void assert_near_inside(const pons_sample *s, double margin, const float *found,
                               const safetensor *expected, const char *name)
{
    float *e = channels_last(expected);
    int64_t compared = 0;

    for (int64_t n = 0; n < expected->count; n++) {
        if (!is_inside(s, n, margin))
            continue;
        ck_assert_msg(fabsf(found[n] - e[n]) <= 1e-4f * 150, "%s: voxel %d is %g, expected %g",
                      name, (int)n, (double)found[n], (double)e[n]);
        compared++;
    }
    ck_assert_int_gt(compared, expected->count / 4);
    free(e);
}

/* Whether two voxels are equally near to the position, so that rounding decides. */
static bool is_tie(const pons_sample *s, int64_t voxel)
{
    double at[3];

    position_of(s, voxel, at);
    for (int i = 0; i < 3; i++)
        if (fabs(fabs(at[i] - rint(at[i])) - 0.5) < 1e-5)
            return true;
    return false;
}

/* Labels inside of the case; beyond it they are 0. */
static void assert_labels_inside(const pons_sample *s, const uint8_t *found,
                                 const safetensor *expected, const char *name)
{
    float *e = channels_last(expected);
    int64_t other = 0;

    for (int64_t n = 0; n < expected->count; n++)
        other += (float)found[n] != (is_inside(s, n, 0.5) ? e[n] : 0) && !is_tie(s, n);
    ck_assert_msg((double)other <= LABEL_SHARE * (double)expected->count,
                  "%s: %d of %d labels differ", name, (int)other, (int)expected->count);
    free(e);
}

static void plan_ini(const safetensor *t, const char *ini, pons_sample *sample)
{
    golden_patch g;

    patch_open(&g, t, ini);
    patch_plan(&g, sample);
    patch_close(&g);
}

#define ALL                                                                                       \
    "rotate_range = 0.2 0.2 0.1 0.1 -0.4 -0.4\n"                                                 \
    "shear_range = 0.05 0.05 0 0 0 0 0.1 0.1 0 0 0 0\n"                                          \
    "translate_range = 1 1 -1 -1 2 2\nscale_range = 0.1 0.1 -0.1 -0.1 0 0\n"

static const struct { const char *name, *options; loader_pad pad; } affines[] = {
    { "affine_rotate_bilinear_border", "rotate_range = 0.3 0.3 -0.2 -0.2 0.5 0.5\n",
      LOADER_PAD_EDGE },
    { "affine_rotate_nearest_border", "rotate_range = 0.3 0.3 -0.2 -0.2 0.5 0.5\n",
      LOADER_PAD_EDGE },
    { "affine_scale_bilinear_border", "scale_range = -0.2 -0.2 0.2 0.2 0.1 0.1\n",
      LOADER_PAD_EDGE },
    { "affine_scale_nearest_border", "scale_range = -0.2 -0.2 0.2 0.2 0.1 0.1\n",
      LOADER_PAD_EDGE },
    { "affine_shear_bilinear_border",
      "shear_range = 0.1 0.1 -0.05 -0.05 0.2 0.2 0 0 0.15 0.15 -0.1 -0.1\n", LOADER_PAD_EDGE },
    { "affine_shear_nearest_border",
      "shear_range = 0.1 0.1 -0.05 -0.05 0.2 0.2 0 0 0.15 0.15 -0.1 -0.1\n", LOADER_PAD_EDGE },
    { "affine_translate_bilinear_border", "translate_range = 1.5 1.5 -2.25 -2.25 0.75 0.75\n",
      LOADER_PAD_EDGE },
    { "affine_translate_bilinear_zeros", "translate_range = 1.5 1.5 -2.25 -2.25 0.75 0.75\n",
      LOADER_PAD_ZERO },
    { "affine_translate_nearest_zeros", "translate_range = 1.5 1.5 -2.25 -2.25 0.75 0.75\n",
      LOADER_PAD_ZERO },
    { "affine_all_bilinear_border", ALL, LOADER_PAD_EDGE },
    { "affine_all_bilinear_zeros", ALL, LOADER_PAD_ZERO },
    { "affine_all_nearest_border", ALL, LOADER_PAD_EDGE },
    { "affine_all_nearest_zeros", ALL, LOADER_PAD_ZERO },
};

START_TEST(affine_maps_read_what_monai_reads)
{
    const char *name = affines[_i].name;
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    const safetensor *expected = find_array(arrays, name);
    pons_sample sample;
    static reading r;
    char ini[512];

    snprintf(ini, sizeof ini, "[augment]\nsteps = affine\n[augment.affine]\nprobability = 1\n%s",
             affines[_i].options);
    plan_ini(find_array(arrays, "image"), ini, &sample);
    read_volume(arrays, &sample, affines[_i].pad, &r);
    if (strstr(name, "nearest") != NULL)
        assert_labels_inside(&sample, r.label, expected, name);
    else
        assert_near(r.image, expected, IMAGE_OF_RANGE, name);
    safetensors_close(arrays);
}
END_TEST

/*
 * MONAI pads a zoomed volume by its outermost voxels, here the volume goes on; voxels that are read
 * inside of it agree.
 */
static const struct { const char *name, *zoom; } zooms[] = {
    { "zoom_0.75_trilinear", "0.75 0.75 0.75" },
    { "zoom_1.3_trilinear", "1.3 1.1 0.9" }, { "zoom_1.2_trilinear", "1.2 1.2 1.2" },
};

START_TEST(zoomed_patches_equal_monais_inside_of_the_volume)
{
    const char *name = zooms[_i].name;
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    const safetensor *expected = find_array(arrays, name);
    pons_sample sample;
    static reading r;
    char ini[512];

    snprintf(ini, sizeof ini, "[augment]\nsteps = zoom\n[augment.zoom]\nprobability = 1\n"
             "min_zoom = %s\nmax_zoom = %s\n", zooms[_i].zoom, zooms[_i].zoom);
    plan_ini(find_array(arrays, "image"), ini, &sample);
    read_volume(arrays, &sample, LOADER_PAD_EDGE, &r);
    assert_near_inside(&sample, 0, r.image, expected, name);
    safetensors_close(arrays);
}
END_TEST

static const struct { const char *name; double sigma, magnitude; } elastics[] = {
    { "elastic_2.0", 2, 30 }, { "elastic_1.5", 1.5, 12 },
};

/* MONAI interpolates with a border of repeated voxels, and smooths offsets in a border of zeros. */
START_TEST(displaced_voxels_are_read_as_by_monai)
{
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    const safetensor *image = find_array(arrays, "image");
    pons_sample sample;
    static reading r;
    static double golden[3 * 13 * 16 * 11];
    static float field[3 * 13 * 16 * 11];
    char name[64];

    plan_ini(image, "[augment]\n", &sample);
    snprintf(name, sizeof name, "%s_displacement", elastics[_i].name);
    safetensor_doubles(find_array(arrays, name), golden);
    for (size_t n = 0; n < sizeof field / sizeof *field; n++)
        field[n] = (float)golden[n];
    sample.displaced = true;
    sample.displacement = field;
    read_volume(arrays, &sample, LOADER_PAD_EDGE, &r);
    snprintf(name, sizeof name, "%s_bilinear", elastics[_i].name);
    assert_near(r.image, find_array(arrays, name), IMAGE_OF_RANGE, name);
    snprintf(name, sizeof name, "%s_nearest", elastics[_i].name);
    assert_labels_inside(&sample, r.label, find_array(arrays, name), name);
    safetensors_close(arrays);
}
END_TEST

START_TEST(offsets_are_smoothed_as_by_monai)
{
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    const safetensor *offset = find_array(arrays, "elastic_offset");
    const double sigma = elastics[_i].sigma;
    const gaussian_filter f = { .sigma = { sigma, sigma, sigma }, .truncated = 3 };
    pons_patch patch = { .size = sizeof patch, .extent = { 13, 16, 11 }, .channels = 3 };
    char name[64];

    patch.image = channels_last(offset);
    patch.scratch = malloc(2 * (size_t)offset->count * sizeof *patch.scratch);
    for (int c = 0; c < 3; c++)
        gaussian_filter_apply(&f, &patch, c, patch.image + c, 3);
    for (int64_t n = 0; n < offset->count; n++)
        patch.image[n] *= (float)elastics[_i].magnitude;
    snprintf(name, sizeof name, "%s_displacement", elastics[_i].name);
    assert_near(patch.image, find_array(arrays, name), IMAGE_OF_RANGE, name);
    free(patch.image);
    free(patch.scratch);
    safetensors_close(arrays);
}
END_TEST

#define ROTATE(STEPS)                                                                             \
    "[augment]\nsteps = " STEPS "\n[augment.rotate]\nplugin = affine\nprobability = 1\n"         \
    "rotate_order = kji\nrotate_range = 0.31 0.31 -0.22 -0.22 0.47 0.47\n"
#define SCALE(NUMBER)                                                                             \
    "[augment.scale]\nplugin = affine\nprobability = 1\nisotropic = yes\n"                       \
    "scale_range = " NUMBER " " NUMBER "\n"

/* Ids of 255 are the -1 of nnU-Net, which marks what lies outside. */
static void assert_ids(const uint8_t *found, const safetensor *expected, const char *name)
{
    float *e = channels_last(expected);
    int64_t other = 0;

    for (int64_t n = 0; n < expected->count; n++)
        other += found[n] != (uint8_t)(int)e[n];
    ck_assert_msg((double)other <= NNUNET_LABEL_SHARE * (double)expected->count,
                  "%s: %d of %d labels differ", name, (int)other, (int)expected->count);
    free(e);
}

static const struct { const char *name, *ini; } spatials[] = {
    { "spatial_crop", "[augment]\n" },
    { "spatial_rotate", ROTATE("rotate") },
    { "spatial_scale", "[augment]\nsteps = scale\n" SCALE("0.3") },
    { "spatial_rotate_scale", ROTATE("rotate scale") SCALE("-0.25") },
};

/* The patch of 14 x 18 x 16 voxels lies in the middle of 20 x 26 x 22. Ids are one larger here. */
START_TEST(patches_are_turned_and_scaled_as_by_nnunet)
{
    safetensors *arrays = open_arrays("nnunet/augment.safetensors");
    const int64_t start[3] = { 3, 4, 3 };
    packed_case p;
    pons_sample sample;
    golden_patch g;
    char name[64];
    uint8_t *label = malloc(14 * 18 * 16);

    snprintf(name, sizeof name, "%s/image", spatials[_i].name);
    patch_open(&g, find_array(arrays, name), spatials[_i].ini);
    patch_plan(&g, &sample);
    sample.linear_labels = true;
    pack_arrays(&p, find_array(arrays, "image"), find_array(arrays, "seg"), 1);
    patch_extract(&p, &sample, start, LOADER_PAD_ZERO, 0, 14, g.patch.image, label);
    assert_near(g.patch.image, find_array(arrays, name), IMAGE_OF_RANGE, name);
    for (int n = 0; n < 14 * 18 * 16; n++)
        label[n]--;
    snprintf(name, sizeof name, "%s/seg", spatials[_i].name);
    assert_ids(label, find_array(arrays, name), name);
    free(label);
    packed_case_clear(&p);
    patch_close(&g);
    safetensors_close(arrays);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden augment");

    tcase_add_loop_test(c, values_equal_those_of_monai_and_nnunet, 0,
                        sizeof value_cases / sizeof value_cases[0]);
    tcase_add_loop_test(c, powers_are_as_near_as_promised, 0, 10);
    tcase_add_test(c, a_bias_field_of_given_coefficients_equals_monais);
    tcase_add_loop_test(c, affine_maps_read_what_monai_reads, 0,
                        sizeof affines / sizeof affines[0]);
    tcase_add_loop_test(c, zoomed_patches_equal_monais_inside_of_the_volume, 0,
                        sizeof zooms / sizeof zooms[0]);
    tcase_add_loop_test(c, displaced_voxels_are_read_as_by_monai, 0,
                        sizeof elastics / sizeof elastics[0]);
    tcase_add_loop_test(c, offsets_are_smoothed_as_by_monai, 0,
                        sizeof elastics / sizeof elastics[0]);
    tcase_add_loop_test(c, patches_are_turned_and_scaled_as_by_nnunet, 0,
                        sizeof spatials / sizeof spatials[0]);
    tcase_add_loop_test(c, given_boxes_are_dropped_as_by_monai, 0,
                        sizeof dropouts / sizeof dropouts[0]);
    tcase_add_loop_test(c, colours_are_changed_as_by_torchvision, 0,
                        sizeof jitters / sizeof jitters[0]);
    tcase_add_test(c, orders_and_factors_of_colours_are_drawn_as_by_torchvision);
    tcase_add_test(c, two_channels_are_grey_each);
    return suite_run();
}
