/*
 * check_channels.c - transforms of images with more channels than a word has bits. The channels
 * that 'channels' names change; all others keep their bits.
 */
#include "data/transform/augment.h"
#include "data/transform/pipeline.h"

#include "support/dataset_maker.h"
#include "support/suite.h"

enum { SIDE = 4, VOXELS = SIDE * SIDE * SIDE, CHANNELS = 70, VALUES = VOXELS * CHANNELS };

/* The channels lie on both sides of the first word's end. */
static const int named[] = { 3, 63, 64, 69 };
#define NAMED "channels = 3 63 64 69\n"

static bool is_named(int channel)
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i] == channel)
            return true;
    return false;
}

static float value_of(int i)
{
    return 1 + (float)(i % 97) / 8 + (float)(i / CHANNELS);
}

static pipeline *chain_of(config **ini, const char *section, const char *text)
{
    pons_error err = PONS_ERROR_INIT;
    pipeline *chain = NULL;

    maker_text("a.ini", text);
    ck_assert_msg(config_open(maker_path("a.ini"), 0, NULL, ini, &err) == PONS_OK, "%s", err.text);
    pipeline_open(*ini, section, strcmp(section, "augment") == 0, CHANNELS, &chain, &err);
    ck_assert_msg(err.status == PONS_OK, "%s", err.text);
    return chain;
}

/* At least 'least' voxels of each changed channel have another value, and none of the others. */
static void assert_changed(const float *x, bool all, int least)
{
    for (int c = 0; c < CHANNELS; c++) {
        int changed = 0;
        for (int v = 0; v < VOXELS; v++)
            changed += x[v * CHANNELS + c] != value_of(v * CHANNELS + c);
        ck_assert_msg(all || is_named(c) ? changed >= least : changed == 0,
                      "%d of %d voxels of channel %d have changed", changed, VOXELS, c);
    }
}

/* ---- deterministic transforms ---------------------------------------------------------------- */

static void make_case(pons_case *c)
{
    const int64_t extent[3] = { SIDE, SIDE, SIDE };
    pons_error err = PONS_ERROR_INIT;

    *c = (pons_case){ .size = sizeof *c, .name = "many" };
    ck_assert_int_eq(pons_volume_init(&c->image, PONS_F32, CHANNELS, extent, &err), PONS_OK);
    for (int i = 0; i < VALUES; i++)
        ((float *)c->image.voxels)[i] = value_of(i);
}

static const char *const deterministic[] = {
    "[preprocess]\nsteps = scale_range\n[preprocess.scale_range]\nfrom = 0 1\nto = -2 -1\n",
    "[preprocess]\nsteps = scale_percentiles\n[preprocess.scale_percentiles]\nfrom = 10 90\n"
    "to = -2 -1\n",
    "[preprocess]\nsteps = scale_percentiles\n[preprocess.scale_percentiles]\nfrom = 10 90\n"
    "to = -2 -1\nchannel_wise = yes\n",
    "[preprocess]\nsteps = normalize\n[preprocess.normalize]\nsubtrahend = 1000\n",
    "[preprocess]\nsteps = normalize\n[preprocess.normalize]\nsubtrahend = 1000\n"
    "channel_wise = yes\n",
};

static void transform_all(const char *text, const char *more, bool all)
{
    char both[512];
    pons_error err = PONS_ERROR_INIT;
    config *ini;
    pipeline *chain;
    pons_case c;

    snprintf(both, sizeof both, "%s%s", text, more);
    chain = chain_of(&ini, "preprocess", both);
    make_case(&c);
    ck_assert_msg(pipeline_apply(chain, PIPELINE_ALL, &c, NULL, &err) == PONS_OK, "%s", err.text);
    assert_changed(c.image.voxels, all, VOXELS);
    pons_volume_clear(&c.image);
    pipeline_close(chain);
    config_close(ini);
}

START_TEST(a_deterministic_transform_changes_only_named_channels_of_70)
{
    transform_all(deterministic[_i], NAMED, false);
    transform_all(deterministic[_i], "", true);
}
END_TEST

START_TEST(normalisation_is_per_channel_with_70_channels)
{
    pons_error err = PONS_ERROR_INIT;
    config *ini;
    pipeline *chain = chain_of(&ini, "preprocess", "[preprocess]\nsteps = normalize\n"
                               "[preprocess.normalize]\nchannel_wise = yes\n");
    pons_case c;

    make_case(&c);
    ck_assert_msg(pipeline_apply(chain, PIPELINE_ALL, &c, NULL, &err) == PONS_OK, "%s", err.text);
    for (int channel = 0; channel < CHANNELS; channel++) {
        double sum = 0;
        for (int v = 0; v < VOXELS; v++)
            sum += ((const float *)c.image.voxels)[v * CHANNELS + channel];
        ck_assert_double_eq_tol(sum / VOXELS, 0, 1e-5);
    }
    pons_volume_clear(&c.image);
    pipeline_close(chain);
    config_close(ini);
}
END_TEST

START_TEST(foreground_may_be_defined_by_channel_69)
{
    pons_error err = PONS_ERROR_INIT;
    config *ini;
    pipeline *chain = chain_of(&ini, "preprocess", "[preprocess]\nsteps = crop_foreground\n"
                               "[preprocess.crop_foreground]\nchannel_indices = 69\n");
    pons_case c;

    make_case(&c);
    for (int v = 0; v < VOXELS; v++)
        ((float *)c.image.voxels)[v * CHANNELS + 69] = v / SIDE == 5;
    ck_assert_msg(pipeline_apply(chain, PIPELINE_ALL, &c, NULL, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(c.image.extent[0], 1);
    ck_assert_int_eq(c.image.extent[1], 1);
    ck_assert_int_eq(c.image.extent[2], SIDE);
    pons_volume_clear(&c.image);
    pipeline_close(chain);
    config_close(ini);
}
END_TEST

START_TEST(a_channel_beyond_the_image_is_refused)
{
    pons_error err = PONS_ERROR_INIT;
    config *ini = NULL;
    pipeline *chain = NULL;

    maker_text("a.ini", "[preprocess]\nsteps = normalize\n[preprocess.normalize]\nchannels = 70\n");
    ck_assert_int_eq(config_open(maker_path("a.ini"), 0, NULL, &ini, &err), PONS_OK);
    ck_assert_int_eq(pipeline_open(ini, "preprocess", false, CHANNELS, &chain, &err),
                     PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "found channel 70, expected 0 to 69"));
    config_close(ini);
}
END_TEST

/* ---- random transforms ----------------------------------------------------------------------- */

static const char *const random_steps[] = {
    "[augment]\nsteps = gaussian_noise\n[augment.gaussian_noise]\nmean = 50\nprobability = 1\n",
    "[augment]\nsteps = scale_intensity\n[augment.scale_intensity]\nfactors = 2 3\n"
    "probability = 1\n",
    "[augment]\nsteps = scale_intensity\n[augment.scale_intensity]\nfactors = 2 3\n"
    "probability = 1\nchannel_wise = yes\n",
    "[augment]\nsteps = shift_intensity\n[augment.shift_intensity]\noffsets = 2 3\n"
    "probability = 1\n",
    "[augment]\nsteps = shift_intensity\n[augment.shift_intensity]\noffsets = 2 3\n"
    "probability = 1\nchannel_wise = yes\n",
    "[augment]\nsteps = brightness\n[augment.brightness]\nfactors = 2 3\nprobability = 1\n",
    "[augment]\nsteps = contrast\n[augment.contrast]\nfactors = 0.1 0.2\nprobability = 1\n",
    "[augment]\nsteps = adjust_contrast\n[augment.adjust_contrast]\ngamma = 2 3\n"
    "probability = 1\n",
    "[augment]\nsteps = gaussian_smooth\n[augment.gaussian_smooth]\nsigma_x = 1 2\n"
    "probability = 1\n",
    "[augment]\nsteps = gaussian_sharpen\n[augment.gaussian_sharpen]\nprobability = 1\n",
    "[augment]\nsteps = low_resolution\n[augment.low_resolution]\nzoom_range = 0.5 0.5\n"
    "probability = 1\n",
    "[augment]\nsteps = bias_field\n[augment.bias_field]\nprobability = 1\n",
    "[augment]\nsteps = coarse_dropout\n[augment.coarse_dropout]\nspatial_size = 1\n"
    "dropout_holes = no\nprobability = 1\n",
};

/* The first device parameter of an unchanged channel equals that of a zeroed record. */
static void assert_numbers(const augment *a, const char *records, bool all)
{
    static const char zeros[512];
    float told[PONS_SAMPLE_PARAMS_MAX][CHANNELS] = { { 0 } }, unchanged[PONS_SAMPLE_PARAMS_MAX]
        [CHANNELS] = { { 0 } };
    pons_sample_params now = { .size = sizeof now, .channels = CHANNELS, .number = told[0] };
    pons_sample_params none = { .size = sizeof none, .channels = CHANNELS,
                                .number = unchanged[0] };

    augment_sample_params(a, 0, records, &now);
    augment_sample_params(a, 0, zeros, &none);
    for (int c = 0; c < CHANNELS; c++)
        ck_assert_msg((told[0][c] != unchanged[0][c]) == (all || is_named(c)), "channel %d", c);
}

static void augment_all(const char *text, const char *more, bool all)
{
    static float x[VALUES], scratch[2 * VALUES];
    char both[512], records[4096];
    pons_sample sample = { .size = sizeof sample, .extent = { SIDE, SIDE, SIDE },
                           .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
    pons_patch patch = { .size = sizeof patch, .extent = { SIDE, SIDE, SIDE },
                         .channels = CHANNELS, .image = x, .scratch = scratch };
    pons_rng draws = { .seed = 3 };
    pons_error err = PONS_ERROR_INIT;
    config *ini;
    pipeline *chain;
    augment a;

    snprintf(both, sizeof both, "%s%s", text, more);
    chain = chain_of(&ini, "augment", both);
    ck_assert_int_eq(augment_init(&a, chain, &err), PONS_OK);
    ck_assert_int_eq(augment_plan(&a, &draws, &sample, records, &err), PONS_OK);
    for (int i = 0; i < VALUES; i++)
        x[i] = value_of(i);
    ck_assert_int_eq(augment_apply(&a, 0, 1, records, &patch, &err), PONS_OK);
    assert_changed(x, all, VOXELS / 2);
    if (chain->step[0].operations->numbers != NULL)
        assert_numbers(&a, records, all);
    augment_clear(&a);
    pipeline_close(chain);
    config_close(ini);
}

START_TEST(a_random_transform_changes_only_named_channels_of_70)
{
    augment_all(random_steps[_i], NAMED, false);
    augment_all(random_steps[_i], "", true);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("channels");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_loop_test(c, a_deterministic_transform_changes_only_named_channels_of_70, 0,
                        (int)(sizeof deterministic / sizeof *deterministic));
    tcase_add_test(c, normalisation_is_per_channel_with_70_channels);
    tcase_add_test(c, foreground_may_be_defined_by_channel_69);
    tcase_add_test(c, a_channel_beyond_the_image_is_refused);
    tcase_add_loop_test(c, a_random_transform_changes_only_named_channels_of_70, 0,
                        (int)(sizeof random_steps / sizeof *random_steps));
    return suite_run();
}
