/*
 * check_nonfinite.c - NaN and infinity in a voxel, a label, the loss, a gradient, a weight or an
 * optimizer slot. The value is found in its step by the first check that reads it, on all replicas.
 * The message names the case or the tensor. No checkpoint contains such a value.
 */
#include <config.h>

#include "support/finite_weights.h"
#include "support/run/tiny_run.h"
#include "support/spoil.h"
#include "support/suite.h"

#include <math.h>

#define EACH_STEP "--set", "train.checkpoint_every=1", "--set", "train.validate_every=0", "--set", \
                  "train.validate_steps=0", "--set", "train.ema_decay=0", "--set",                 \
                  "train.steps=20", "--set", "train.keep=50", "--set", "train.accumulate=3"

/* Faulty plugins are in the plugin path beside the built ones. */
static void make_run(void)
{
    make_tiny_run();
    add_plugin("optimizer", "poison");
    add_plugin("loss", "unsound");
    search_first(in_root("plugins"));
}

/* Every tensor of every checkpoint is finite. The result is the newest step, or -1 without one. */
static int64_t newest_finite(void)
{
    char folder[256];
    int64_t newest = run_newest_checkpoint("run");

    snprintf(folder, sizeof folder, "%s/runs/run/checkpoints", root);
    newest_finite_in(folder, newest);
    return newest;
}

static void expect_messages(const char *a, const char *b)
{
    const char *said = root_text("said");

    ck_assert_msg(strstr(said, a) != NULL, "'%s' is not in: %s", a, said);
    ck_assert_msg(strstr(said, b) != NULL, "'%s' is not in: %s", b, said);
}

/* ---- weights and slots ----------------------------------------------------------------------- */

static const char *const values[] = { "optimizer.value=inf", "optimizer.value=nan" };
static const char *const replicas[] = { "distribute.devices=cpu",
                                        "distribute.devices=cpu:0,cpu:0,cpu:0" };

static const char *const spoiled[] = { "optimizer.what=weight", "optimizer.what=slot" };

/*
 * The update of step 5 damages weights or slots. The run ends in that step, whatever the setting
 * for non-finite gradients.
 */
START_TEST(a_non_finite_weight_or_slot_ends_its_step)
{
    make_run();
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "optimizer.plugin=poison", "--set",
                          spoiled[_i / 4], "--set", values[_i % 2], "--set", replicas[_i / 2 % 2],
                          "--set", _i / 2 % 2 ? "train.accumulate=1" : "train.accumulate=3",
                          "--set", _i % 2 ? "train.nonfinite=skip" : "train.nonfinite=stop"), 1);
    expect_messages("step 5: the update of 'model.",
                    "' reads or writes what is not finite; cases ph");
    ck_assert_int_eq(newest_finite(), 4);
    ck_assert_int_eq(steps_recorded("run"), 4);
    remove_root();
}
END_TEST

/* The control: a run without such a value has no error. */
START_TEST(a_run_without_non_finite_values_succeeds)
{
    make_run();
    EXPECT(0, NULL, "train", "e.ini", EACH_STEP, "--set", "optimizer.plugin=poison", "--set",
           "optimizer.at=21");
    ck_assert_int_eq(newest_finite(), 20);
    remove_root();
}
END_TEST

/* ---- loss and gradient ----------------------------------------------------------------------- */

START_TEST(a_non_finite_loss_or_gradient_ends_the_step)
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
            expect_messages(kinds[i].said, "cases phantom_");
            ck_assert_int_eq(steps_recorded("run"), 0);
            ck_assert_int_eq(newest_finite(), -1);
        }
    }
    remove_root();
}
END_TEST

/* ---- voxels and labels ----------------------------------------------------------------------- */

enum { INNER_VOXEL = 6 * 11 * 10 + 5 * 10 + 5 };

START_TEST(a_non_finite_voxel_or_label_is_refused_with_its_file)
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
        expect_messages(strrchr(files[i].file, '/'),
                        i < 2 ? "1 voxel is not finite" : "1 voxel is no label");
        ck_assert_msg(!root_has("runs/run/metrics.jsonl"), "a run that cannot begin left records");
        remove_root();
    }
}
END_TEST

/*
 * The square of a finite voxel overflows. The error names only the case of that voxel, on any
 * replica.
 */
START_TEST(a_case_that_overflows_is_named_in_its_step)
{
    make_run();
    spoil_voxel("data/imagesTr/phantom_001.nii.gz", INNER_VOXEL, 3e38f);
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", replicas[_i], "--set",
                          "train.accumulate=1"), 1);
    expect_messages("running mean or variance is not finite; first tensor 'model.",
                    ", cases phantom_001\n");
    ck_assert_int_lt(steps_recorded("run"), 3); /* an epoch has three cases */
    ck_assert_int_eq(newest_finite(), -1);
    remove_root();
}
END_TEST

enum { ALONE, REPLICAS, RANKS, PLACES };

/* Three cases of a step: on one replica, on three replicas of a process, on three processes. */
static int train_at_place(int place, const char *precision)
{
    const char *const words[] = { "launch", "-n", "3", "--", "train", "e.ini", EACH_STEP, "--set",
                                  precision, "--set", replicas[place == REPLICAS], "--set",
                                  place == ALONE ? "train.accumulate=3" : "train.accumulate=1",
                                  NULL };

    return process_finish(process_start(place == RANKS ? words : words + 4));
}

static const char *const precisions[] = { "train.precision=fp32", "train.precision=bf16" };

/* The case is in any micro-batch of the step, on any replica. */
START_TEST(only_the_case_that_overflows_is_named)
{
    char file[64], cases[64];

    make_run();
    snprintf(file, sizeof file, "data/imagesTr/phantom_%03d.nii.gz", _i % 3);
    snprintf(cases, sizeof cases, ", cases phantom_%03d\n", _i % 3);
    spoil_voxel(file, INNER_VOXEL, 3e38f);
    ck_assert_int_eq(train_at_place(_i / 6, precisions[_i / 3 % 2]), 1);
    expect_messages(" is not finite; first tensor 'model.", cases);
    ck_assert_int_eq(steps_recorded("run"), 0);
    remove_root();
}
END_TEST

/* The hint's setting lets the run continue. */
START_TEST(a_run_continues_with_non_finite_steps_skipped)
{
    make_run();
    EXPECT(0, NULL, "train", "e.ini", EACH_STEP, "--set", "train.accumulate=1", "--set",
           "train.steps=3");
    spoil_voxel("data/imagesTr/phantom_001.nii.gz", INNER_VOXEL, 3e38f);
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "train.accumulate=1"), 1);
    expect_messages("is not finite; first tensor", "\nhint: --set train.nonfinite=skip goes on ");
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "train.accumulate=1", "--set",
                          "train.nonfinite=skip"), 0);
    expect_messages("going on after step ", " is skipped: tensor 'model.");
    remove_root();
}
END_TEST

/*
 * A skipped step is read again so that its case can be named. The next step follows. A run that
 * continues after a skipped step has the same weights.
 */
START_TEST(a_run_continues_after_a_skipped_step)
{
    make_run();
    spoil_voxel("data/imagesTr/phantom_001.nii.gz", INNER_VOXEL, 3e38f);
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "train.accumulate=1", "--set",
                          "train.nonfinite=skip"), 0);
    expect_messages(" is skipped: tensor 'model.", ", cases phantom_001\n");
    shell("set -e; cd runs; cp -r run whole; cd run/checkpoints; rm -r last step-0000001? "
          "step-00000020");
    ck_assert_int_eq(PONS("train", "e.ini", EACH_STEP, "--set", "train.accumulate=1", "--set",
                          "train.nonfinite=skip"), 0);
    expect_messages("going on after step 9", " is skipped: tensor 'model.");
    ck_assert_int_eq(steps_recorded("run"), 20);
    ck_assert(same_runs("whole", "run", "model optimizer"));
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("nonfinite");

    tcase_add_loop_test(c, a_non_finite_weight_or_slot_ends_its_step, 0, 8);
    tcase_add_test(c, a_run_without_non_finite_values_succeeds);
    tcase_add_test(c, a_non_finite_loss_or_gradient_ends_the_step);
    tcase_add_test(c, a_non_finite_voxel_or_label_is_refused_with_its_file);
    tcase_add_loop_test(c, a_case_that_overflows_is_named_in_its_step, 0, 2);
    tcase_add_loop_test(c, only_the_case_that_overflows_is_named, 0, PLACES * 6);
    tcase_add_test(c, a_run_continues_with_non_finite_steps_skipped);
    tcase_add_test(c, a_run_continues_after_a_skipped_step);
    return suite_run();
}
