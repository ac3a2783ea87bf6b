/*
 * check_kill.c - processes that are killed, or get a signal, at any moment of a training that
 * mostly writes checkpoints.
 */
#include <config.h>

#include "support/run/tiny_run.h"
#include "support/soak.h"
#include "support/suite.h"

#include <signal.h>
#include <sys/stat.h>

/* A checkpoint after every step: most of the time one is being written. */
#define SAVE_EACH "--set", "train.checkpoint_every=1", "--set", "train.steps=160", "--set", \
                  "data.validation=none", "--set", "train.accumulate=4", "--set", "log.sinks=csv"

static unsigned random_state = 20261121;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

/* Factor by which a process is slower than on an idle machine until its first save. */
static double slowness = 1;

static void note_progress(bool seen)
{
    slowness *= seen ? 0.97 : 1.05;
    slowness = slowness < 1 ? 1 : slowness;
}

/* A random time during the first checkpoints of a process. */
static void wait_random_time(void)
{
    usleep((useconds_t)(slowness * (40000 + random_below(100000))));
}

static pid_t start_run(void)
{
    return START("train", "e.ini", SAVE_EACH);
}

/* The folder is on a disk: in memory a checkpoint is written too fast to be interrupted. */
static void make_whole_run(void)
{
    setenv("TMPDIR", "/var/tmp", 1);
    make_tiny_run();
    printf("seed %u\n", random_state);
    EXPECT(0, NULL, "train", "e.ini", SAVE_EACH, "--set", "experiment.name=whole");
}

/*
 * The interrupted run has finished: it equals the undisturbed one. The next process starts a new
 * run.
 */
static void end_run(int *ended)
{
    ck_assert(same_runs("whole", "run", TENSOR_FILES));
    shell("rm -rf runs/run");
    ++*ended;
}

/* ---- SIGKILL --------------------------------------------------------------------------------- */

START_TEST(a_kill_at_any_moment_leaves_complete_checkpoints)
{
    int kills = 0, ended = 0, wanted = soak_times(100, 1000), parts = 0;
    int64_t before = -1;

    make_whole_run();
    while (kills < wanted || ended < soak_times(2, 50)) {
        char command[256];
        pid_t child = start_run();
        wait_random_time();
        kill(child, SIGKILL);
        int code = process_finish(child);
        ck_assert_msg(code == 0 || code == 1000 + SIGKILL, "code %d: %s", code, root_text("said"));
        kills += code != 0;
        int64_t newest = run_newest_checkpoint("run");
        ck_assert_int_ge(newest, before);
        note_progress(newest > before);
        snprintf(command, sizeof command, "ls %s/runs/run/checkpoints 2>/dev/null | grep -q part",
                 root);
        parts += system(command) == 0;
        before = newest;
        if (code == 0) {
            end_run(&ended);
            before = -1;
        }
    }
    printf("%d kills, %d of them while a checkpoint was being written, %d runs to the end\n", kills,
           parts, ended);
    ck_assert_int_gt(parts, wanted / 20);
    remove_root();
}
END_TEST

/* The control: the files of a checkpoint are written over those of the one before. */
static void write_files_in_place(const char *from)
{
    char command[512];

    snprintf(command, sizeof command, "for f in %s/*; do cat $f >%s/runs/run/checkpoints/"
             "step-00000001/${f##*/}; done", from, root);
    for (;;)
        if (system(command) != 0)
            _exit(1);
}

START_TEST(a_checkpoint_written_in_place_becomes_unreadable)
{
    char whole[256];
    int bad = 0;

    make_whole_run();
    snprintf(whole, sizeof whole, "%s/runs/whole/checkpoints/step-%08d", root, 160);
    shell("mkdir -p runs/run/checkpoints/step-00000001");
    for (int i = 0; i < 20; i++) {
        pons_error err = PONS_ERROR_INIT;
        pid_t child = fork();
        if (child == 0) {
            setpgid(0, 0);
            write_files_in_place(whole);
        }
        usleep(20000 + random_below(10000));
        setpgid(child, child);
        kill(-child, SIGKILL);
        process_finish(child);
        bad += checkpoint_verify(in_root("runs/run/checkpoints/step-00000001"), &err) != PONS_OK;
    }
    printf("%d of 20 unreadable\n", bad);
    ck_assert_int_gt(bad, 1);
    remove_root();
}
END_TEST

/* ---- SIGTERM and SIGUSR1 --------------------------------------------------------------------- */

typedef struct answers {
    int interrupted, ended, early, twice, late; /* late: over 1 s after the second               */
    double slowest, slowest_twice;
} answers;

/* A process gets a signal; every third process gets two. */
static void signal_process(int round, answers *a)
{
    static const int signals[] = { SIGTERM, SIGUSR1 };
    /* A process with two signals may leave records that the next one, if it has time, cuts off. */
    int64_t left = steps_recorded("run");
    pid_t child = start_run();
    bool again = round % 3 == 2;

    wait_random_time();
    kill(child, signals[round % 2]);
    if (again) {
        usleep(random_below(4000));
        kill(child, signals[(round + 1) % 2]);
    }
    double took, *slowest = again ? &a->slowest_twice : &a->slowest;
    int code = process_finish_timed(child, &took);
    *slowest = took > *slowest ? took : *slowest;
    a->twice += again;
    a->late += again && took > 1;
    if (code == 0) {
        end_run(&a->ended);
        return;
    }
    if (code == 1000 + SIGTERM || code == 1000 + SIGUSR1) {
        a->early++; /* no handler was installed yet */
        note_progress(false);
        return;
    }
    note_progress(true);
    ck_assert_msg(code == 75, "code %d: %s", code, root_text("said"));
    /* The second signal may come between the rename of a checkpoint and the update of 'last'. */
    bool at_once = strstr(root_text("said"), "interrupted twice") != NULL;
    int64_t newest = run_newest_checkpoint("run"), last = run_marked_step("run", "last");
    ck_assert_msg(newest == last || (at_once && newest > last), "newest %ld, last %ld: %s",
                  (long)newest, (long)last, root_text("said"));
    if (newest > 0 && !at_once && steps_recorded("run") != left)
        ck_assert_int_ge(newest, steps_recorded("run"));
    a->interrupted++;
}

START_TEST(a_signal_at_any_moment_saves_and_exits_75)
{
    int wanted = soak_times(50, 500);
    answers a = { 0 };

    make_whole_run();
    for (int round = 0; a.interrupted < wanted && round < 4 * wanted; round++)
        signal_process(round, &a);
    ck_assert_int_ge(a.interrupted, wanted);
    while (a.ended < 1)
        if (process_finish(start_run()) == 0)
            end_run(&a.ended);
    printf("%d answers, %d runs to the end; slowest %.2f s, after a second signal %.2f s\n",
           a.interrupted, a.ended, a.slowest, a.slowest_twice);
    ck_assert_double_le(a.slowest, 10);
    ck_assert_int_gt(a.twice, 10);
    ck_assert_int_le(a.late, a.twice / 10); /* a machine may be too busy now and then */
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("kill");

    tcase_add_test(c, a_kill_at_any_moment_leaves_complete_checkpoints);
    tcase_add_test(c, a_checkpoint_written_in_place_becomes_unreadable);
    tcase_add_test(c, a_signal_at_any_moment_saves_and_exits_75);
    return suite_run();
}
