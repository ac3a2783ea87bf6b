/*
 * check_saving.c - checkpoints on a slow or failing disk. Steps go on, one checkpoint is written
 * at a time, a failure is reported, and a signal is answered. The disk is disk_shim.c, preloaded.
 */
#include <config.h>

#include "support/process/disk_preload.h"
#include "support/process/process_state.h"
#include "support/run/tiny_run.h"
#include "support/suite.h"

#include <signal.h>

#define SAVE_EACH_TEN "--set", "train.steps=25", "--set", "train.validate_steps=0", "--set", \
                      "train.validate_every=0", "--set", "train.accumulate=3", "--set", \
                      "train.checkpoint_every=10"
#define USUAL_GRACE "train.grace_s=10"

/* The disk of the checkpoint folder completes no fsync until the gate is open. */
#define STUCK "/checkpoints fsync 0 0 0 0"

static void open_gate(void)
{
    write_text("gate", "");
}

static void remove_run_and_gate(void)
{
    shell("rm -rf gate runs/run");
}

/* Count of the names in the checkpoint folder that end in '.part'. */
static int count_part_files(void)
{
    char command[256], text[32] = "";

    snprintf(command, sizeof command, "ls %s/runs/run/checkpoints 2>/dev/null | grep -c part",
             root);
    FILE *pipe = popen(command, "r");
    if (fgets(text, sizeof text, pipe) == NULL)
        text[0] = '\0';
    pclose(pipe);
    return atoi(text);
}

/* The run has three training cases and takes three a step, so that an epoch is a step. */
static pid_t start_with(const char *fault, const char *grace)
{
    preload_disk(fault, strcmp(fault, STUCK) == 0 ? in_root("gate") : NULL);
    pid_t child = START("train", "e.ini", SAVE_EACH_TEN, "--set", grace);
    preload_disk(NULL, NULL);
    return child;
}

static void wait_for_part(void)
{
    for (int i = 0; i < 60000 && count_part_files() == 0; i++)
        usleep(1000);
    ck_assert_int_gt(count_part_files(), 0);
}

static void wait_for_steps(int steps)
{
    for (int i = 0; i < 60000 && steps_recorded("run") < steps; i++)
        usleep(1000);
    ck_assert_int_eq(steps_recorded("run"), steps);
}

/*
 * Ten steps are done while a checkpoint is being written; the second checkpoint waits for the
 * first.
 */
START_TEST(steps_go_on_while_a_slow_disk_takes_a_checkpoint)
{
    make_tiny_run();
    EXPECT(0, NULL, "train", "e.ini", SAVE_EACH_TEN, "--set", "experiment.name=quick");
    pid_t child = start_with(STUCK, USUAL_GRACE);
    wait_for_part();
    wait_for_steps(20);
    usleep(200000);
    ck_assert_int_eq(steps_recorded("run"), 20);
    ck_assert_int_eq(run_marked_step("run", "last"), -1);
    ck_assert_int_eq(count_part_files(), 1);
    open_gate();
    ck_assert_int_eq(process_finish(child), 0);
    ck_assert(same_runs("quick", "run", TENSOR_FILES));
    remove_root();
}
END_TEST

START_TEST(failed_write_ends_the_run_with_path_and_cause)
{
    make_tiny_run();
    pid_t child = start_with("/checkpoints fsync 2 5 0 0", USUAL_GRACE);
    ck_assert_int_eq(process_finish(child), 1);
    char *said = root_text("said");
    ck_assert_msg(strstr(said, "cannot write '") != NULL && strstr(said, "/checkpoints/") != NULL
                  && strstr(said, "optimizer.safetensors': Input/output error") != NULL,
                  "%s", said);
    ck_assert_int_le(steps_recorded("run"), 20); /* the next checkpoint has not begun */
    ck_assert_int_eq(run_newest_checkpoint("run"), -1);
    ck_assert_int_eq(count_part_files(), 0);
    EXPECT(0, NULL, "train", "e.ini", SAVE_EACH_TEN);
    ck_assert_int_eq(run_newest_checkpoint("run"), 25);
    remove_root();
}
END_TEST

/* A busy machine may be too slow in one round, but not in each. */
enum { ROUNDS = 5 };

/* Seconds from the second signal to the end of a run whose disk never completes a checkpoint. */
static double interrupt_twice(void)
{
    remove_run_and_gate();
    pid_t child = start_with(STUCK, USUAL_GRACE);
    double took;

    wait_for_part();
    process_signal(child, SIGTERM);
    kill(child, SIGUSR1);
    ck_assert_int_eq(process_finish_timed(child, &took), 75);
    ck_assert_ptr_nonnull(strstr(root_text("said"), "interrupted twice"));
    ck_assert_int_eq(run_newest_checkpoint("run"), -1);
    return took;
}

START_TEST(second_signal_does_not_wait_for_the_disk)
{
    double took = 1e9;

    make_tiny_run();
    for (int round = 0; round < ROUNDS && took >= 2.5; round++)
        took = interrupt_twice();
    ck_assert_msg(took < 2.5, "%g s", took);
    EXPECT(0, NULL, "train", "e.ini", SAVE_EACH_TEN);
    ck_assert_int_eq(run_newest_checkpoint("run"), 25);
    ck_assert_int_eq(count_part_files(), 0);
    remove_root();
}
END_TEST

/* The grace ends long before the disk completes; the process ends with a whole checkpoint. */
START_TEST(first_signal_waits_until_the_checkpoint_is_complete)
{
    make_tiny_run();
    pid_t child = start_with(STUCK, "train.grace_s=0.1");
    wait_for_part();
    process_signal(child, SIGTERM);
    usleep(500000);
    ck_assert(!process_is_gone(child));
    open_gate();
    ck_assert_int_eq(process_finish(child), 75);
    int64_t last = run_marked_step("run", "last");
    ck_assert_int_ge(last, 10);
    ck_assert_int_eq(run_newest_checkpoint("run"), last);
    ck_assert_int_eq(steps_recorded("run"), last);
    ck_assert_int_eq(count_part_files(), 0);
    remove_root();
}
END_TEST

/*
 * 'timeout' signals the process and then its group. A distinct second signal would end the process
 * when the gate opens; the pair must count as one. A copy that is delivered late counts as a
 * second one.
 */
START_TEST(a_signal_sent_twice_at_once_counts_once)
{
    bool twice = true;

    make_tiny_run();
    for (int round = 0; round < ROUNDS && twice; round++) {
        remove_run_and_gate();
        pid_t child = start_with(STUCK, USUAL_GRACE);
        wait_for_part();
        process_signal(child, SIGTERM);
        process_signal(child, SIGTERM);
        usleep(1500000);
        open_gate();
        ck_assert_int_eq(process_finish(child), 75);
        twice = strstr(root_text("said"), "interrupted twice") != NULL;
        ck_assert_int_ge(run_newest_checkpoint("run"), twice ? -1 : steps_recorded("run"));
    }
    ck_assert(!twice);
    remove_root();
}
END_TEST

/*
 * The run counts as finished only after the marks of its last checkpoint; the next start sees
 * that.
 */
START_TEST(a_run_is_finished_after_its_last_marks_on_a_slow_disk)
{
    make_tiny_run();
    ck_assert_int_eq(process_finish(start_with("/checkpoints rename 0 0 0 300", USUAL_GRACE)), 0);
    ck_assert_int_eq(run_marked_step("run", "last"), 25);
    EXPECT(0, "is finished", "train", "e.ini", SAVE_EACH_TEN);
    remove_root();
}
END_TEST

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return suite_skip("check_saving", "no sanitizer"); /* its library must be loaded first */
#endif
    TCase *c = suite_new("saving");

    tcase_add_test(c, steps_go_on_while_a_slow_disk_takes_a_checkpoint);
    tcase_add_test(c, failed_write_ends_the_run_with_path_and_cause);
    tcase_add_test(c, second_signal_does_not_wait_for_the_disk);
    tcase_add_test(c, first_signal_waits_until_the_checkpoint_is_complete);
    tcase_add_test(c, a_signal_sent_twice_at_once_counts_once);
    tcase_add_test(c, a_run_is_finished_after_its_last_marks_on_a_slow_disk);
    return suite_run();
}
