/*
 * check_contract.c - a plugin that breaks a rule ends the run in one line with exit code 6,
 * without a crash; 'plugin check' prints the same.
 */
#include <config.h>

#include "support/run/run_pons.h"
#include "support/suite.h"

#include <pons/plugin.h>

static const char ini[] =
    "[experiment]\nname = run\n"
    "[data]\nsource = data\nvalidation = none\nloader_threads = 0\n"
    "[patch]\nextent = 8 8 8\n"
    "[model]\n%s\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = sgd\nlr = 1e-3\n"
    "[train]\nsteps = 1\nprecision = fp32\n";

static const struct {
    const char *kind, *name, *fault, *phrase;
} broken[] = {
    { "loss", "loss_silent_failure", "status",
      "the loss: 'build' returned 6 and has not said why" },
    { "loss", "loss_silent_failure", "code", "the loss: 'build' returned 99 and has not said why" },
    { "loss", "loss_silent_failure", "nothing",
      "loss 'loss_silent_failure' has not set its value" },
    { "loss", "loss_silent_failure", "shape", "expected one number" },
    { "model", "model_silent_failure", "status",
      "the model: 'build' returned 6 and has not said why" },
    { "model", "model_silent_failure", "nothing",
      "model 'model_silent_failure' has not set output 0 of 1" },
    { "model", "model_silent_failure", "none", "model 'model_silent_failure' gives " },
    { "optimizer", "optimizer_silent_failure", "status",
      "the optimizer: 'update' returned 6 and has not said why" },
    { "optimizer", "optimizer_silent_failure", "code",
      "the optimizer: 'update' returned 99 and has not said why" },
    { "optimizer", "optimizer_silent_failure", "nothing", "the optimizer assigns to none of " },
    { "transform", "transform_breaks_rule", "status",
      "the transform: 'apply' returned 4 and has not said why" },
    { "transform", "transform_breaks_rule", "check",
      "the transform: 'check' returned 3 and has not said why" },
    { "transform", "transform_breaks_rule", "lost", "the label has lost its voxels" },
    { "transform", "transform_breaks_rule", "singular", "the affine has become singular" },
    { "transform", "transform_breaks_rule", "inside", "the box inside the image" },
    { "transform", "transform_breaks_rule", "id", "class 9" },
};
enum { BROKEN = sizeof broken / sizeof *broken };

static void make_experiment(const char *kind)
{
    char text[1024];

    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "1", "--extent", "12,12,12");
    snprintf(text, sizeof text, ini, strcmp(kind, "model") == 0 ? "plugin = model_silent_failure"
             : "plugin = unet\nchannels = 4 8\nstrides = 2");
    write_text("e.ini", text);
}

static void train_with(int code, const char *phrase, const char *kind, const char *name,
                       const char *fault)
{
    bool step = strcmp(kind, "transform") == 0;
    char plugin[64], option[64];

    snprintf(plugin, sizeof plugin, "%s%s=%s", step ? "preprocess" : kind,
             step ? ".steps" : ".plugin", name);
    snprintf(option, sizeof option, "%s.fault=%s",
             step ? "preprocess.transform_breaks_rule" : kind, fault);
    add_plugin(kind, name);
    search_first(in_root("plugins"));
    EXPECT(code, phrase, "train", "e.ini", "--set", plugin, "--set", option);
}

static void check_with(int code, const char *phrase, const char *kind, const char *name,
                       const char *fault)
{
    char path[128], option[64];

    snprintf(path, sizeof path, "plugins/%s/%s.so", kind, name);
    snprintf(option, sizeof option, "%s.fault=%s", kind, fault);
    add_plugin(kind, name);
    EXPECT(code, phrase, "plugin", "check", path, "--set", option);
}

START_TEST(a_broken_rule_ends_the_run_in_one_line)
{
    make_experiment(broken[_i].kind);
    train_with(PONS_PLUGIN, broken[_i].phrase, broken[_i].kind, broken[_i].name, broken[_i].fault);
}
END_TEST

START_TEST(a_broken_rule_is_found_by_plugin_check)
{
    check_with(PONS_PLUGIN, broken[_i].phrase, broken[_i].kind, broken[_i].name, broken[_i].fault);
}
END_TEST

/* The controls are the same plugins without a fault. */
START_TEST(plugins_without_a_fault_pass_run_and_check)
{
    static const char *const kept[][2] = {
        { "loss", "loss_silent_failure" }, { "optimizer", "optimizer_silent_failure" },
        { "transform", "transform_breaks_rule" }
    };

    make_experiment(kept[_i][0]);
    train_with(0, NULL, kept[_i][0], kept[_i][1], "none");
    check_with(0, NULL, kept[_i][0], kept[_i][1], "none");
}
END_TEST

START_TEST(a_negative_learning_rate_is_refused)
{
    make_experiment("schedule");
    add_plugin("schedule", "schedule_negative");
    search_first(in_root("plugins"));
    EXPECT(PONS_PLUGIN,
           "schedule 'schedule_negative' gives the rate -0.0005 for step 5, expected 0 or more",
           "train", "e.ini", "--set", "schedule.plugin=schedule_negative", "--set",
           "train.steps=8");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("contract");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_loop_test(c, a_broken_rule_ends_the_run_in_one_line, 0, BROKEN);
    tcase_add_loop_test(c, a_broken_rule_is_found_by_plugin_check, 0, BROKEN);
    tcase_add_loop_test(c, plugins_without_a_fault_pass_run_and_check, 0, 3);
    tcase_add_test(c, a_negative_learning_rate_is_refused);
    return suite_run();
}
