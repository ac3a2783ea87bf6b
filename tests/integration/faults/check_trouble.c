/*
 * check_trouble.c - trainings of two ranks, of which one has a fault that the other does not see.
 * The fault is a loader that never returns, or NaN in voxels, loss, gradients, weights or slots.
 * All ranks end together, or all continue.
 */
#include "support/finite_weights.h"
#include "support/run/ranks.h"
#include "support/suite.h"

enum { TIMED_ROUNDS = 3, STEPS = 20 };

static void setup(void)
{
    make_root();
    make_phantom();
    add_plugin("transform", "trouble");
    add_plugin("optimizer", "poison");
    add_plugin("loss", "unsound");
    search_first(in_root("plugins"));
}

#define SAID(PHRASE) (strstr(root_text("said"), PHRASE) != NULL)
#define EXPECT_SAID(PHRASE) ck_assert_msg(SAID(PHRASE), "'%s' is not in: %s", PHRASE,             \
                                          root_text("said"))

/* A run of twenty steps, with a checkpoint after each epoch, all of them kept. */
static pid_t start_run(const char *name, const char *const *set)
{
    launch_words l = { name, 2, { NULL },
                       { "train.steps=20", "train.checkpoint_every=1", "train.keep=50",
                         "train.validate_every=0", set[0], set[1], set[2], set[3] } };

    return start_launch(&l);
}

static int train_run(const char *name, const char *const *set)
{
    return process_finish(start_run(name, set));
}

static int64_t newest_finite(const char *run)
{
    return newest_finite_in(in_run(run, "checkpoints"), STEPS);
}

static const char steps_word[] = "augment.steps=flip gaussian_noise trouble";
static const char *const ranks[] = { "augment.trouble.rank=0", "augment.trouble.rank=1" };

/* ---- a loader that never returns ------------------------------------------------------------- */

/* Time from the last step to the end of all processes. */
static double time_hang(const char *name, int rank)
{
    const char *const set[4] = { steps_word, ranks[rank], "augment.trouble.what=hang",
                                 "distribute.timeout_s=3" };
    char said[64];
    pid_t launcher, process[8];
    double last = seconds_now();
    int steps = 0, count = 0, code = -1;

    shell("rm -rf runs/%s", name);
    launcher = start_run(name, set);
    while (waitpid(launcher, &code, WNOHANG) == 0) {
        if (steps_of(name) != steps)
            last = seconds_now();
        steps = steps_of(name);
        count = steps > 0 && count < 2 ? find_ranks(launcher, process, 8) : count;
        pause_for(0.01);
    }
    ck_assert_msg(WIFEXITED(code) && WEXITSTATUS(code) == PONS_COMMUNICATION, "code %d: %s", code,
                  root_text("said"));
    ck_assert_int_eq(count_in(root_text("said"), "error: "), 1);
    snprintf(said, sizeof said, "rank %d hangs: no progress for ", rank);
    EXPECT_SAID(said);
    EXPECT_SAID(", data, "); /* the rank's state, and that of all ranks */
    EXPECT_SAID("\n  rank 0: "); /* on a busy machine this may still be its start */
    EXPECT_SAID("\n  rank 1: ");
    expect_processes_gone(process, count, 0);
    return seconds_now() - last;
}

START_TEST(a_loader_that_never_returns_is_found_in_time)
{
    double took = 1e9;

    /* The hang is found after timeout_s + 2 s; all processes end within 5 s. */
    for (int round = 0; round < TIMED_ROUNDS && took > 3 + 2 + 5; round++)
        took = time_hang("hang", _i);
    ck_assert_msg(took <= 10, "%g s", took);
}
END_TEST

/* The loaders of a single process hang from the fourth epoch on. The process ends like a rank. */
static double time_hang_of_process(const char *mode, const char *devices)
{
    pid_t process;
    double last = seconds_now();
    int steps = 0, code = -1;

    process = START("train", "ranks.ini", "--fresh", "--set", "experiment.name=alone", "--set",
                    "train.steps=20", "--set", steps_word, "--set", "augment.trouble.what=hang",
                    "--set", "distribute.timeout_s=3", "--set", mode, "--set", devices, "--set",
                    "train.validate_every=0");
    while (waitpid(process, &code, WNOHANG) == 0) {
        if (steps_of("alone") != steps)
            last = seconds_now();
        steps = steps_of("alone");
        pause_for(0.01);
    }
    ck_assert_msg(WIFEXITED(code) && WEXITSTATUS(code) == PONS_COMMUNICATION, "code %d: %s", code,
                  root_text("said"));
    ck_assert_int_eq(count_in(root_text("said"), "error: "), 1);
    EXPECT_SAID("error: the run hangs: no progress for ");
    EXPECT_SAID(", data)\nhint: ");
    return seconds_now() - last;
}

static const char *const modes[] = { "distribute.mode=single", "distribute.mode=dp" };
static const char *const devices[] = { "distribute.devices=cpu", "distribute.devices=cpu:0,cpu:1" };

START_TEST(a_loader_that_never_returns_ends_a_single_process)
{
    double took = 1e9;

    for (int round = 0; round < TIMED_ROUNDS && took > 3 + 2 + 5; round++)
        took = time_hang_of_process(modes[_i], devices[_i]);
    ck_assert_msg(took <= 10, "%g s", took);
}
END_TEST

/* ---- voxels ---------------------------------------------------------------------------------- */

static const char *const voxels[] = { "augment.trouble.what=nan", "augment.trouble.what=huge" };

START_TEST(a_non_finite_voxel_of_one_rank_ends_the_step_of_all)
{
    const char *name = numbered_name("voxel", _i);
    const char *const set[4] = { steps_word, ranks[_i % 2], voxels[_i / 2] };
    char said[32];

    ck_assert_int_eq(train_run(name, set), PONS_FAILURE);
    ck_assert_int_eq(count_in(root_text("said"), "error: "), 1);
    snprintf(said, sizeof said, "step %d: ", steps_of(name) + 1);
    EXPECT_SAID(said);
    EXPECT_SAID("is not finite; first tensor '");
    EXPECT_SAID("cases phantom_");
    ck_assert_int_lt(steps_of(name), 5); /* epoch 3 begins with the third step or the fourth */
    ck_assert_int_le(newest_finite(name), steps_of(name));
}
END_TEST

/* The steps that the end of a training counts as skipped; -1: it has no such line. */
static int steps_told_as_skipped(const char *said)
{
    const char *end = strstr(said, " steps skipped: a tensor was not finite"), *at = end;
    int skipped, steps;

    while (at != NULL && at > said && at[-1] != '\n' && at[-1] != ':')
        at--;
    return at != NULL && sscanf(at, " %d of %d", &skipped, &steps) == 2 && steps == STEPS ? skipped
                                                                                     : -1;
}

START_TEST(all_ranks_skip_the_same_steps)
{
    const char *const set[4] = { steps_word, ranks[1], voxels[0], "train.nonfinite=skip" };

    ck_assert_int_eq(train_run("skip", set), PONS_OK); /* without equal weights it would hang */
    ck_assert_int_eq(count_in(root_text("said"), " is skipped: tensor '"), 3);
    EXPECT_SAID("further steps that are skipped are counted, and told at the end");
    ck_assert_int_gt(steps_told_as_skipped(root_text("said")), STEPS - 5);
    ck_assert_int_eq(count_in(root_text("said"), " skipped: a tensor"), 1);
    ck_assert_int_eq(steps_of("skip"), STEPS);
    ck_assert_int_eq(newest_finite("skip"), STEPS);
}
END_TEST

/* The control: the same pipeline without a fault, as one process. */
START_TEST(a_run_without_faults_has_the_bits_of_one_process)
{
    const char *const set[4] = { steps_word, ranks[1], "augment.trouble.what=none" };

    EXPECT(0, NULL, "train", "ranks.ini", "--set", "experiment.name=plain", "--set",
           "distribute.mode=single", "--set", "train.steps=20", "--set", steps_word, "--set",
           "train.validate_every=0");
    ck_assert_int_eq(train_run("sound", set), PONS_OK);
    expect_same_state("plain", "sound");
    ck_assert_int_eq(newest_finite("sound"), STEPS);
}
END_TEST

/* ---- loss and gradient ----------------------------------------------------------------------- */

static const struct { const char *what, *said; } losses[] = {
    { "loss.what=value", "step 1: the loss is not finite" },
    { "loss.what=gradient", "step 1: the gradient is not finite; first tensor '" },
};

START_TEST(a_non_finite_loss_or_gradient_of_one_rank_ends_all)
{
    static const char *const whose[] = { "loss.rank=0", "loss.rank=1", "loss.rank=2" };
    const char *name = numbered_name("loss", _i);
    const char *const set[4] = { "loss.plugin=unsound", losses[_i / 3].what, whose[_i % 3] };
    bool nobody = _i % 3 == 2; /* the control: no rank of two */

    ck_assert_int_eq(train_run(name, set), nobody ? PONS_OK : PONS_FAILURE);
    ck_assert_msg(count_in(root_text("said"), "error: ") == !nobody, "%s", root_text("said"));
    ck_assert_int_eq(steps_of(name), nobody ? STEPS : 0);
    ck_assert_int_eq(newest_finite(name), nobody ? STEPS : -1);
    if (!nobody) {
        EXPECT_SAID(losses[_i / 3].said);
        EXPECT_SAID("cases phantom_");
    }
}
END_TEST

/* ---- weights and slots ----------------------------------------------------------------------- */

static const struct { const char *what, *rank, *value; } poisons[] = {
    { "optimizer.what=weight", "optimizer.rank=0", "optimizer.value=nan" },
    { "optimizer.what=weight", "optimizer.rank=1", "optimizer.value=inf" },
    { "optimizer.what=slot", "optimizer.rank=0", "optimizer.value=inf" },
    { "optimizer.what=slot", "optimizer.rank=1", "optimizer.value=nan" },
};

/* The fifth update damages the value. That rank ends there, the others while they wait for it. */
START_TEST(a_non_finite_weight_or_slot_of_one_rank_is_never_saved)
{
    const char *name = numbered_name("poison", _i);
    const char *const set[4] = { "optimizer.plugin=poison", poisons[_i].what, poisons[_i].rank,
                                 poisons[_i].value };

    ck_assert_int_eq(train_run(name, set), PONS_FAILURE);
    ck_assert_msg(count_in(root_text("said"), "error: ") == 1, "%s", root_text("said"));
    EXPECT_SAID("step 5: the update of 'model.");
    ck_assert_int_le(steps_of(name), 5);
    ck_assert_int_le(newest_finite(name), 5);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("trouble");

    tcase_add_unchecked_fixture(c, setup, remove_root);
    tcase_add_loop_test(c, a_loader_that_never_returns_is_found_in_time, 0, 2);
    tcase_add_loop_test(c, a_loader_that_never_returns_ends_a_single_process, 0, 2);
    tcase_add_loop_test(c, a_non_finite_voxel_of_one_rank_ends_the_step_of_all, 0, 4);
    tcase_add_test(c, all_ranks_skip_the_same_steps);
    tcase_add_test(c, a_run_without_faults_has_the_bits_of_one_process);
    tcase_add_loop_test(c, a_non_finite_loss_or_gradient_of_one_rank_ends_all, 0, 6);
    tcase_add_loop_test(c, a_non_finite_weight_or_slot_of_one_rank_is_never_saved, 0,
                        sizeof poisons / sizeof *poisons);
    return suite_run();
}
