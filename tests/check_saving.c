/*
 * check_saving.c - checkpoints on a slow or failing disk: steps go on, one is written at a time, a
 * failure is told, a signal gets its answer. The disk is disk_shim.c, preloaded.
 */
#include <config.h>

#include "disk_preload.h"
#include "process_state.h"
#include "tiny_run.h"
#include "suite.h"

#include <signal.h>

#define SAVE_EACH_TEN "--set", "train.steps=25", "--set", "train.validate_steps=0", "--set", \
                      "train.validate_every=0", "--set", "train.accumulate=3", "--set", \
                      "train.checkpoint_every=10"
#define USUAL_GRACE "train.grace_s=10"

/* The folder of checkpoints has a disk that is done with nothing before the gate is open. */
#define STUCK "/checkpoints fsync 0 0 0 0"

static void open_gate(void)
{
    write_text("gate", "");
}

static void begin_anew(void)
{
    char command[160];

    snprintf(command, sizeof command, "cd %s && rm -rf gate runs/run", root);
    ck_assert_int_eq(system(command), 0);
}

/* Names in the folder of checkpoints that end in '.part'. */
static int parts(void)
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

/* Three training cases and three a step: an epoch is a step. */
static pid_t start_with(const char *fault, const char *grace)
{
    preload_disk(fault, strcmp(fault, STUCK) == 0 ? in_root("gate") : NULL);
    pid_t child = START("train", "e.ini", SAVE_EACH_TEN, "--set", grace);
    preload_disk(NULL, NULL);
    return child;
}

static void wait_for_part(void)
{
    for (int i = 0; i < 60000 && parts() == 0; i++)
        usleep(1000);
    ck_assert_int_gt(parts(), 0);
}

static void wait_for_steps(int steps)
{
    for (int i = 0; i < 60000 && steps_recorded("run") < steps; i++)
        usleep(1000);
    ck_assert_int_eq(steps_recorded("run"), steps);
}

/* Ten steps are done while a checkpoint is not; the second one waits for the first. */
START_TEST(steps_go_on_while_a_slow_disk_takes_a_checkpoint)
{
    make_tiny_run();
    EXPECT(0, NULL, "train", "e.ini", SAVE_EACH_TEN, "--set", "experiment.name=quick");
    pid_t child = start_with(STUCK, USUAL_GRACE);
    wait_for_part();
    wait_for_steps(20);
    usleep(200000);
    ck_assert_int_eq(steps_recorded("run"), 20);
    ck_assert_int_eq(marked("run", "last"), -1);
    ck_assert_int_eq(parts(), 1);
    open_gate();
    ck_assert_int_eq(finish(child), 0);
    ck_assert(same_runs("quick", "run", TENSOR_FILES));
    remove_root();
}
END_TEST

START_TEST(failed_write_ends_the_run_with_path_and_cause)
{
    make_tiny_run();
    pid_t child = start_with("/checkpoints fsync 2 5 0 0", USUAL_GRACE);
    ck_assert_int_eq(finish(child), 1);
    char *said = text_of("said");
    ck_assert_msg(strstr(said, "cannot write '") != NULL && strstr(said, "/checkpoints/") != NULL
                  && strstr(said, "optimizer.safetensors': Input/output error") != NULL,
                  "%s", said);
    ck_assert_int_le(steps_recorded("run"), 20); /* the next checkpoint was never begun */
    ck_assert_int_eq(newest_whole("run"), -1);
    ck_assert_int_eq(parts(), 0);
    EXPECT(0, NULL, "train", "e.ini", SAVE_EACH_TEN);
    ck_assert_int_eq(newest_whole("run"), 25);
    remove_root();
}
END_TEST

/* What a machine may be too busy for once, but not each time. */
enum { ROUNDS = 5 };

/* A run that never saves: seconds from the second signal to its end. */
static double interrupt_twice(void)
{
    begin_anew();
    pid_t child = start_with(STUCK, USUAL_GRACE);
    double took;

    wait_for_part();
    process_signal(child, SIGTERM);
    kill(child, SIGUSR1);
    ck_assert_int_eq(finish_counting(child, &took), 75);
    ck_assert_ptr_nonnull(strstr(text_of("said"), "interrupted twice"));
    ck_assert_int_eq(newest_whole("run"), -1);
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
    ck_assert_int_eq(newest_whole("run"), 25);
    ck_assert_int_eq(parts(), 0);
    remove_root();
}
END_TEST

/* The grace is over long before the disk is done: the process ends with a whole checkpoint. */
START_TEST(first_signal_waits_until_the_checkpoint_is_complete)
{
    make_tiny_run();
    pid_t child = start_with(STUCK, "train.grace_s=0.1");
    wait_for_part();
    process_signal(child, SIGTERM);
    usleep(500000);
    ck_assert(!process_is_gone(child));
    open_gate();
    ck_assert_int_eq(finish(child), 75);
    int64_t last = marked("run", "last");
    ck_assert_int_ge(last, 10);
    ck_assert_int_eq(newest_whole("run"), last);
    ck_assert_int_eq(steps_recorded("run"), last);
    ck_assert_int_eq(parts(), 0);
    remove_root();
}
END_TEST

/*
 * As 'timeout' does, which signals the process and then the group that it is in. A second signal
 * would have ended the process when the gate opens; one that is taken late is such a one.
 */
START_TEST(a_signal_that_comes_twice_at_once_is_one)
{
    bool twice = true;

    make_tiny_run();
    for (int round = 0; round < ROUNDS && twice; round++) {
        begin_anew();
        pid_t child = start_with(STUCK, USUAL_GRACE);
        wait_for_part();
        process_signal(child, SIGTERM);
        process_signal(child, SIGTERM);
        usleep(1500000);
        open_gate();
        ck_assert_int_eq(finish(child), 75);
        twice = strstr(text_of("said"), "interrupted twice") != NULL;
        ck_assert_int_ge(newest_whole("run"), twice ? -1 : steps_recorded("run"));
    }
    ck_assert(!twice);
    remove_root();
}
END_TEST

/* The end of a run is behind its last checkpoint's marks, and the next start finds it finished. */
START_TEST(finished_run_on_a_slow_disk_is_finished)
{
    make_tiny_run();
    ck_assert_int_eq(finish(start_with("/checkpoints rename 0 0 0 300", USUAL_GRACE)), 0);
    ck_assert_int_eq(marked("run", "last"), 25);
    EXPECT(0, "is finished", "train", "e.ini", SAVE_EACH_TEN);
    remove_root();
}
END_TEST

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("a sanitizer's library must come first: nothing can be preloaded\n");
    return 77;
#endif
    TCase *c = suite_new("saving");

    tcase_add_test(c, steps_go_on_while_a_slow_disk_takes_a_checkpoint);
    tcase_add_test(c, failed_write_ends_the_run_with_path_and_cause);
    tcase_add_test(c, second_signal_does_not_wait_for_the_disk);
    tcase_add_test(c, first_signal_waits_until_the_checkpoint_is_complete);
    tcase_add_test(c, a_signal_that_comes_twice_at_once_is_one);
    tcase_add_test(c, finished_run_on_a_slow_disk_is_finished);
    return suite_run();
}
