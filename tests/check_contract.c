/*
 * check_contract.c - plugins that break a rule of theirs end a run in one line with exit code 6,
 * and 'plugin check' says the same; none of them crashes either.
 */
#include <config.h>

#include "run_pons.h"
#include "suite.h"

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
    { "loss", "silent", "status", "the loss: 'build' returned 6 and has not said why" },
    { "loss", "silent", "code", "the loss: 'build' returned 99 and has not said why" },
    { "loss", "silent", "nothing", "loss 'silent' has not set its value" },
    { "loss", "silent", "shape", "expected one number" },
    { "model", "blank", "status", "the model: 'build' returned 6 and has not said why" },
    { "model", "blank", "nothing", "model 'blank' has not set output 0 of 1" },
    { "model", "blank", "none", "model 'blank' gives " },
    { "optimizer", "idle", "status", "the optimizer: 'update' returned 6 and has not said why" },
    { "optimizer", "idle", "code", "the optimizer: 'update' returned 99 and has not said why" },
    { "optimizer", "idle", "nothing", "the optimizer assigns to none of " },
    { "transform", "crooked", "status", "the transform: 'apply' returned 4 and has not said why" },
    { "transform", "crooked", "check", "the transform: 'check' returned 3 and has not said why" },
    { "transform", "crooked", "lost", "the label has lost its voxels" },
    { "transform", "crooked", "singular", "the affine has become singular" },
    { "transform", "crooked", "inside", "the box inside the image" },
    { "transform", "crooked", "id", "class 9" },
};
enum { BROKEN = sizeof broken / sizeof *broken };

static void make_experiment(const char *kind)
{
    char text[1024];

    make_root();
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "1", "--extent", "12,12,12");
    snprintf(text, sizeof text, ini, strcmp(kind, "model") == 0 ? "plugin = blank"
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
    snprintf(option, sizeof option, "%s.fault=%s", step ? "preprocess.crooked" : kind, fault);
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
    remove_root();
}
END_TEST

START_TEST(a_broken_rule_is_found_by_plugin_check)
{
    make_root();
    check_with(PONS_PLUGIN, broken[_i].phrase, broken[_i].kind, broken[_i].name, broken[_i].fault);
    remove_root();
}
END_TEST

/* The controls: the same plugins with no fault. */
START_TEST(a_kept_rule_ends_no_run_and_no_check)
{
    static const char *const kept[][2] = {
        { "loss", "silent" }, { "optimizer", "idle" }, { "transform", "crooked" }
    };

    make_experiment(kept[_i][0]);
    train_with(0, NULL, kept[_i][0], kept[_i][1], "none");
    check_with(0, NULL, kept[_i][0], kept[_i][1], "none");
    remove_root();
}
END_TEST

START_TEST(a_rate_below_zero_is_no_rate)
{
    make_experiment("schedule");
    add_plugin("schedule", "late");
    search_first(in_root("plugins"));
    EXPECT(PONS_PLUGIN, "schedule 'late' gives the rate -0.0005 for step 5, expected 0 or more",
           "train", "e.ini", "--set", "schedule.plugin=late", "--set", "train.steps=8");
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("contract");

    tcase_add_loop_test(c, a_broken_rule_ends_the_run_in_one_line, 0, BROKEN);
    tcase_add_loop_test(c, a_broken_rule_is_found_by_plugin_check, 0, BROKEN);
    tcase_add_loop_test(c, a_kept_rule_ends_no_run_and_no_check, 0, 3);
    tcase_add_test(c, a_rate_below_zero_is_no_rate);
    return suite_run();
}
