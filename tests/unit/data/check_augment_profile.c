/*
 * check_augment_profile.c - [augment] profile: steps and options that a file need not give.
 */
#include "config/augment_profile.h"
#include "config/sections.h"
#include "data/transform/pipeline.h"

#include "support/dataset_maker.h"
#include "support/suite.h"

#include <string.h>

/* The steps of a file, with their options. */
typedef struct opened {
    config *ini;
    sections sections;
    pipeline *chain;
} opened;

static pons_status open_try(opened *o, const char *text, pons_error *err)
{
    static const char *const kept[] = { "augment", NULL };

    *o = (opened){ .ini = NULL };
    maker_text("a.ini", text);
    ck_assert_int_eq(config_open(maker_path("a.ini"), 0, NULL, &o->ini, err), PONS_OK);
    if (sections_fill(o->ini, &o->sections, err) != PONS_OK)
        return err->status;
    sections_skip_plugins(o->ini, &o->sections, kept);
    if (pipeline_open(o->ini, "augment", true, 2, &o->chain, err) != PONS_OK)
        return err->status;
    return config_refuse_unknown(o->ini, err);
}

static void open_text(opened *o, const char *text)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(open_try(o, text, &err) == PONS_OK, "%s", err.text);
}

static void close_text(opened *o)
{
    pipeline_close(o->chain);
    config_close(o->ini);
}

/* The resolved value of a key of a step. */
static const char *value_of(const opened *o, const char *step, const char *key)
{
    char section[64];

    snprintf(section, sizeof section, "augment.%s", step);
    for (int i = 0; i < config_count(o->ini); i++) {
        const char *s, *k, *value;
        config_item(o->ini, i, &s, &k, &value);
        if (strcmp(s, section) == 0 && strcmp(k, key) == 0)
            return value;
    }
    ck_abort_msg("[%s] has no %s", section, key);
    return NULL;
}

static void assert_steps(const opened *o, const char *expected)
{
    char names[512] = "";

    for (int i = 0; i < o->chain->count; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? " " : "",
                 o->chain->step[i].name);
    ck_assert_str_eq(names, expected);
}

#define NNUNET_STEPS                                                                              \
    "rotate scale gaussian_noise gaussian_smooth brightness contrast low_resolution "             \
    "gamma_inverted gamma flip"

static const struct { const char *name, *steps; } profiles[] = {
    { "none", "" },
    { "light", "rotate scale gaussian_noise brightness contrast" },
    { "standard", "rotate scale gaussian_noise gaussian_smooth brightness contrast low_resolution "
      "adjust_contrast" },
    { "heavy", "rotate scale elastic gaussian_noise gaussian_smooth gaussian_sharpen brightness "
      "contrast bias_field low_resolution gamma_inverted adjust_contrast coarse_dropout" },
    { "nnunet", NNUNET_STEPS },
};

START_TEST(a_profile_gives_its_steps_with_valid_options)
{
    char text[128];
    opened o;

    ck_assert_str_eq(augment_profile_words[_i], profiles[_i].name);
    snprintf(text, sizeof text, "[augment]\nprofile = %s\n", profiles[_i].name);
    open_text(&o, text);
    assert_steps(&o, profiles[_i].steps);
    close_text(&o);
}
END_TEST

START_TEST(an_unknown_profile_is_refused)
{
    pons_error err = PONS_ERROR_INIT;
    opened o;

    ck_assert_int_eq(open_try(&o, "[augment]\nprofile = strong\n", &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "[augment] profile = 'strong': expected one of none, light, "
                         "standard, heavy, nnunet") != NULL, "%s", err.text);
    config_close(o.ini);
}
END_TEST

START_TEST(a_section_changes_a_step_and_keeps_the_profile_of_its_other_options)
{
    opened o;

    open_text(&o, "[augment]\nprofile = nnunet\n[augment.gamma]\nprobability = 0.9\n");
    assert_steps(&o, NNUNET_STEPS);
    ck_assert_str_eq(value_of(&o, "gamma", "probability"), "0.9");
    ck_assert_str_eq(value_of(&o, "gamma", "gamma"), "0.7 1.5");
    ck_assert_str_eq(config_origin(o.ini, "augment.gamma", "gamma"), "profile nnunet");
    close_text(&o);
}
END_TEST

START_TEST(other_sections_add_steps_in_the_order_of_the_file)
{
    opened o;

    open_text(&o, "[augment.zoom]\n[augment]\nprofile = light\n[augment.flip]\naxes = 1\n"
                  "[augment.rotate90]\n");
    assert_steps(&o, "rotate scale gaussian_noise brightness contrast zoom flip rotate90");
    close_text(&o);
}
END_TEST

START_TEST(listed_steps_are_those_that_there_are)
{
    opened o;

    open_text(&o, "[augment]\nprofile = nnunet\nsteps = gamma zoom rotate\n");
    assert_steps(&o, "gamma zoom rotate");
    ck_assert_str_eq(value_of(&o, "rotate", "rotate_order"), "kji");
    close_text(&o);
}
END_TEST

START_TEST(a_step_of_another_transform_gets_no_options_of_the_profile)
{
    opened o;

    open_text(&o, "[augment]\nprofile = light\n[augment.rotate]\nplugin = rotate90\n");
    assert_steps(&o, profiles[1].steps);
    ck_assert_str_eq(o.chain->step[0].plugin, "rotate90");
    ck_assert_str_eq(value_of(&o, "rotate", "probability"), "0.1");
    close_text(&o);
}
END_TEST

/* Extent of the patch, and what a profile makes of it. */
static const struct { const char *extent, *angle, *scale, *axes; } patches[] = {
    { "128", "0.5236 0.5236 0.5236", "-0.3 0.4 -0.3 0.4 -0.3 0.4", "0 1 2" },
    { "96 96 32", "0.5236 0.5236 0.5236", "-0.3 0.4 -0.3 0.4 -0.3 0.4", "0 1 2" },
    { "128 128 40", "0 0 3.14159", "-0.3 0.4 -0.3 0.4 0 0", "0 1" },
    { "20 192 160", "3.14159 0 0", "0 0 -0.3 0.4 -0.3 0.4", "1 2" },
    { "1 192 160", "3.14159 0 0", "0 0 -0.3 0.4 -0.3 0.4", "1 2" },
    { "192 1 96", "0 0.2618 0", "-0.3 0.4 0 0 -0.3 0.4", "0 2" },
};

START_TEST(anisotropic_patches_are_changed_within_their_planes)
{
    char text[128];
    opened o;

    snprintf(text, sizeof text, "[patch]\nextent = %s\n[augment]\nprofile = nnunet\n",
             patches[_i].extent);
    open_text(&o, text);
    ck_assert_str_eq(value_of(&o, "rotate", "rotate_range"), patches[_i].angle);
    ck_assert_str_eq(value_of(&o, "scale", "scale_range"), patches[_i].scale);
    ck_assert_str_eq(value_of(&o, "low_resolution", "axes"), patches[_i].axes);
    close_text(&o);
}
END_TEST

START_TEST(the_written_file_opens_to_the_same_values)
{
    pons_error err = PONS_ERROR_INIT;
    opened first, second;
    config *written;

    open_text(&first, "[patch]\nextent = 64\n[augment]\nprofile = heavy\n[augment.zoom]\n"
                      "[augment.elastic]\nprobability = 1\n");
    ck_assert_int_eq(config_write(first.ini, maker_path("b.ini"), &err), PONS_OK);
    ck_assert_int_eq(config_open(maker_path("b.ini"), 0, NULL, &written, &err), PONS_OK);
    second = (opened){ .ini = written };
    ck_assert_int_eq(sections_fill(written, &second.sections, &err), PONS_OK);
    ck_assert_int_eq(pipeline_open(written, "augment", true, 2, &second.chain, &err), PONS_OK);
    ck_assert_int_eq(second.chain->count, first.chain->count);
    for (int i = 0; i < config_count(first.ini); i++) {
        const char *section, *key, *value;
        config_item(first.ini, i, &section, &key, &value);
        if (strncmp(section, "augment", 7) == 0)
            ck_assert_str_eq(config_find(written, section, key)->value, value);
    }
    close_text(&second);
    close_text(&first);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("augment profile");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_loop_test(c, a_profile_gives_its_steps_with_valid_options, 0,
                        sizeof profiles / sizeof profiles[0]);
    tcase_add_test(c, an_unknown_profile_is_refused);
    tcase_add_test(c, a_section_changes_a_step_and_keeps_the_profile_of_its_other_options);
    tcase_add_test(c, other_sections_add_steps_in_the_order_of_the_file);
    tcase_add_test(c, listed_steps_are_those_that_there_are);
    tcase_add_test(c, a_step_of_another_transform_gets_no_options_of_the_profile);
    tcase_add_loop_test(c, anisotropic_patches_are_changed_within_their_planes, 0,
                        sizeof patches / sizeof patches[0]);
    tcase_add_test(c, the_written_file_opens_to_the_same_values);
    return suite_run();
}
