/*
 * check_nonfinite.c - NaN and infinity in a voxel, a label, the loss, a gradient, a weight, a slot:
 * found at once, by whoever sees it first, on all replicas together, with the case or the tensor
 * named; and no checkpoint ever holds one.
 */
#include <config.h>

#include "finite.h"
#include "spoil.h"
#include "tiny_run.h"
#include "suite.h"

#include <math.h>
#include <sys/stat.h>

#define EACH_STEP "--set", "train.checkpoint_every=1", "--set", "train.validate_every=0", "--set", \
                  "train.validate_steps=0", "--set", "train.ema_decay=0", "--set",                 \
                  "train.steps=20", "--set", "train.keep=50", "--set", "train.accumulate=3"

/* Plugins that go wrong lie beside the built ones. */
static void make_run(void)
{
    make_tiny_run();
    add_plugin("optimizer", "poison");
    add_plugin("loss", "unsound");
    search_first(in_root("plugins"));
}

/* All tensors of all checkpoints are finite; the newest one's step, -1: there is none. */
static int64_t newest_finite(void)
{
    char folder[256];
    int64_t newest = newest_whole("run");

    snprintf(folder, sizeof folder, "%s/runs/run/checkpoints", root);
    newest_finite_in(folder, newest);
    return newest;
}

static void expect_said(const char *a, const char *b)
{
    const char *said = text_of("said");

    ck_assert_msg(strstr(said, a) != NULL, "'%s' is not in: %s", a, said);
    ck_assert_msg(strstr(said, b) != NULL, "'%s' is not in: %s", b, said);
}

/* ---- weights and slots ----------------------------------------------------------------------- */

static const char *const values[] = { "optimizer.value=inf", "optimizer.value=nan" };
static const char *const replicas[] = { "distribute.devices=cpu",
                                        "distribute.devices=cpu:0,cpu:0,cpu:0" };

static const char *const spoiled[] = { "optimizer.what=weight", "optimizer.what=slot" };

/* Step 5's update spoils weights or slots: it ends there, whatever is done with bad gradients. */
START_TEST(weight_or_slot_that_is_not_finite_ends_its_step)
{
    make_run();
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "optimizer.plugin=poison", "--set",
                          spoiled[_i / 4], "--set", values[_i % 2], "--set", replicas[_i / 2 % 2],
                          "--set", _i / 2 % 2 ? "train.accumulate=1" : "train.accumulate=3",
                          "--set", _i % 2 ? "train.nonfinite=skip" : "train.nonfinite=stop"), 1);
    expect_said("step 5: the update of 'model.", "' reads or writes what is not finite; cases ph");
    ck_assert_int_eq(newest_finite(), 4);
    ck_assert_int_eq(steps_recorded("run"), 4);
    remove_root();
}
END_TEST

/* The control: nothing is found where nothing is wrong. */
START_TEST(poison_that_comes_too_late_is_not_found)
{
    make_run();
    EXPECT(0, NULL, "train", "e.ini", EACH_STEP, "--set", "optimizer.plugin=poison", "--set",
           "optimizer.at=21");
    ck_assert_int_eq(newest_finite(), 20);
    remove_root();
}
END_TEST

/* ---- loss and gradient ----------------------------------------------------------------------- */

START_TEST(loss_or_gradient_that_is_not_a_number_ends_the_step)
{
    static const struct { const char *set, *said; } kinds[] = {
        { "loss.what=value", "step 1: the loss is not finite" },
        { "loss.what=gradient", "step 1: the gradient is not finite" },
        { "loss.what=both", "step 1: the gradient is not finite" },
    };

    make_run();
    for (int i = 0; i < 3; i++) {
        for (int r = 0; r < 2; r++) {
            ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "loss.plugin=unsound",
                                  "--set", kinds[i].set, "--set", replicas[r], "--set",
                                  r ? "train.accumulate=1" : "train.accumulate=3"), 1);
            expect_said(kinds[i].said, "cases phantom_");
            ck_assert_int_eq(steps_recorded("run"), 0);
            ck_assert_int_eq(newest_finite(), -1);
        }
    }
    remove_root();
}
END_TEST

/* ---- voxels and labels ----------------------------------------------------------------------- */

enum { INNER_VOXEL = 6 * 11 * 10 + 5 * 10 + 5 };

START_TEST(voxel_or_label_that_is_not_finite_is_refused_with_its_file)
{
    static const struct { const char *file; float value; } files[] = {
        { "data/imagesTr/phantom_001.nii.gz", NAN },
        { "data/imagesTr/phantom_002.nii.gz", INFINITY },
        { "data/labelsTr/phantom_001.nii.gz", NAN },
        { "data/labelsTr/phantom_002.nii.gz", -INFINITY },
    };

    for (int i = 0; i < 4; i++) {
        make_run();
        spoil_voxel(files[i].file, INNER_VOXEL, files[i].value);
        ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP), 4);
        expect_said(strrchr(files[i].file, '/'),
                    i < 2 ? "1 voxel is not finite" : "1 voxel is no label");
        ck_assert_msg(!exists("runs/run/metrics.jsonl"), "a run that cannot begin left records");
        remove_root();
    }
}
END_TEST

/* A finite voxel whose square is not: only the case that has it is named, on any replica. */
START_TEST(case_that_overflows_is_found_in_its_step_and_named)
{
    make_run();
    spoil_voxel("data/imagesTr/phantom_001.nii.gz", INNER_VOXEL, 3e38f);
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", replicas[_i], "--set",
                          "train.accumulate=1"), 1);
    expect_said("running mean or variance is not finite; first tensor 'model.",
                ", cases phantom_001\n");
    ck_assert_int_lt(steps_recorded("run"), 3); /* an epoch has three cases */
    ck_assert_int_eq(newest_finite(), -1);
    remove_root();
}
END_TEST

enum { ALONE, REPLICAS, RANKS, PLACES };

/* The three cases of a step on one replica, on three of a process, on three processes. */
static int train_in(int place, const char *precision)
{
    const char *const words[] = { "launch", "-n", "3", "--", "train", "e.ini", EACH_STEP, "--set",
                                  precision, "--set", replicas[place == REPLICAS], "--set",
                                  place == ALONE ? "train.accumulate=3" : "train.accumulate=1",
                                  NULL };

    return finish(start(place == RANKS ? words : words + 4));
}

static const char *const precisions[] = { "train.precision=fp32", "train.precision=bf16" };

/* Whichever of the micro-batches of a step it is in, and whoever has that. */
START_TEST(case_that_overflows_is_named_alone)
{
    char file[64], cases[64];

    if (_i / 6 == RANKS && access("stage/comm/gloo.so", F_OK) != 0) {
        printf("ranks are not looked at: this build has no gloo\n");
        return;
    }
    make_run();
    snprintf(file, sizeof file, "data/imagesTr/phantom_%03d.nii.gz", _i % 3);
    snprintf(cases, sizeof cases, ", cases phantom_%03d\n", _i % 3);
    spoil_voxel(file, INNER_VOXEL, 3e38f);
    ck_assert_int_eq(train_in(_i / 6, precisions[_i / 3 % 2]), 1);
    expect_said(" is not finite; first tensor 'model.", cases);
    ck_assert_int_eq(steps_recorded("run"), 0);
    remove_root();
}
END_TEST

/* As the hint says. */
START_TEST(run_that_has_ended_goes_on_without_such_steps)
{
    make_run();
    EXPECT(0, NULL, "train", "e.ini", EACH_STEP, "--set", "train.accumulate=1", "--set",
           "train.steps=3");
    spoil_voxel("data/imagesTr/phantom_001.nii.gz", INNER_VOXEL, 3e38f);
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "train.accumulate=1"), 1);
    expect_said("is not finite; first tensor", "\nhint: --set train.nonfinite=skip goes on ");
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "train.accumulate=1", "--set",
                          "train.nonfinite=skip"), 0);
    expect_said("going on after step ", " is skipped: tensor 'model.");
    remove_root();
}
END_TEST

/*
 * To name the case its step is read again: then the next one comes. A run that begins after a
 * skipped step comes to the same weights.
 */
START_TEST(run_goes_on_behind_a_step_that_was_skipped)
{
    char command[512];

    make_run();
    spoil_voxel("data/imagesTr/phantom_001.nii.gz", INNER_VOXEL, 3e38f);
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "train.accumulate=1", "--set",
                          "train.nonfinite=skip"), 0);
    expect_said(" is skipped: tensor 'model.", ", cases phantom_001\n");
    snprintf(command, sizeof command, "set -e; cd %s/runs; cp -r run whole; cd run/checkpoints; "
             "rm -r last step-0000001? step-00000020", root);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "train.accumulate=1", "--set",
                          "train.nonfinite=skip"), 0);
    expect_said("going on after step 9", " is skipped: tensor 'model.");
    ck_assert_int_eq(steps_recorded("run"), 20);
    ck_assert(same_runs("whole", "run", "model optimizer"));
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("nonfinite");

    tcase_add_loop_test(c, weight_or_slot_that_is_not_finite_ends_its_step, 0, 8);
    tcase_add_test(c, poison_that_comes_too_late_is_not_found);
    tcase_add_test(c, loss_or_gradient_that_is_not_a_number_ends_the_step);
    tcase_add_test(c, voxel_or_label_that_is_not_finite_is_refused_with_its_file);
    tcase_add_loop_test(c, case_that_overflows_is_found_in_its_step_and_named, 0, 2);
    tcase_add_loop_test(c, case_that_overflows_is_named_alone, 0, PLACES * 6);
    tcase_add_test(c, run_that_has_ended_goes_on_without_such_steps);
    tcase_add_test(c, run_goes_on_behind_a_step_that_was_skipped);
    return suite_run();
}
