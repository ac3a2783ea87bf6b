/*
 * check_launch.c - the launcher: after any fault of a rank or of the launcher all processes end,
 * none is left, and one line tells the cause.
 */
#include "base/clock.h"
#include "cluster/launch/launch.h"
#include "cluster/launch/launch_internal.h"

#include "support/pause.h"
#include "support/process/process_state.h"
#include "support/run/run_pons.h"
#include "support/suite.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

static char rank_program[4096];

static void setup(void)
{
    make_root();
    ck_assert_ptr_nonnull(realpath("tests/unit/cluster/rank_process", rank_program));
}

/* ---- a launcher as a process ----------------------------------------------------------------- */

typedef struct plan {
    int ranks, restarts, nodes, node;
    const char *master;
    bool show_all, verbose;
    double patience_s;
    const char *program;
    const char *word[8];       /* words after the folder                                          */
} plan;

static const char *const *words_of(void *context, int restart)
{
    return context;
}

static int launch_here(const plan *p)
{
    const char *word[10] = { root };
    logger log = { .terminal = stderr, .level = p->verbose ? LOG_VERBOSE : LOG_NORMAL };
    pons_error err = PONS_ERROR_INIT;
    launch_settings s = {
        .program = p->program != NULL ? p->program : rank_program, .words = words_of,
        .context = word, .ranks = p->ranks, .nodes = p->nodes > 0 ? p->nodes : 1, .node = p->node,
        .master = p->master, .port = 29500, .token = p->master != NULL ? "secret" : NULL,
        .restarts = p->restarts, .patience_s = p->patience_s > 0 ? p->patience_s : 60,
        .show_all = p->show_all, .log = &log
    };

    memcpy(word + 1, p->word, sizeof p->word);
    pons_status status = launch_run(&s, &err);
    if (status != PONS_OK)
        log_error(&log, err.text);
    fflush(NULL);
    return (int)status;
}

/* The launcher's output goes to root/out and root/said. */
static pid_t begin_launcher(const plan *p)
{
    pid_t child = fork_child();

    if (child == 0) {
        int out = open(in_root("out"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
        int said = open(in_root("said"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
        dup2(out, 1);
        dup2(said, 2);
        for (int i = 3; i < 1024; i++) /* files of the test's caller */
            close(i);
        signal(SIGHUP, SIG_DFL); /* tests inherit nohup's setting too */
        _exit(launch_here(p));
    }
    return child;
}

static int number_in(int rank, const char *kind)
{
    char name[64];
    int number = 0;

    snprintf(name, sizeof name, "%d.%s", rank, kind);
    FILE *file = fopen(in_root(name), "r");
    if (file == NULL)
        return 0;
    ck_assert_int_eq(fscanf(file, "%d", &number), 1);
    fclose(file);
    return number;
}

static void wait_number(int rank, const char *kind, int least)
{
    int number = 0;

    for (int i = 0; i < 6000 && number < least; i++) {
        number = number_in(rank, kind);
        if (number < least)
            pause_for(0.01);
    }
    ck_assert_msg(number >= least, "rank %d: %d is its number of '%s', expected %d", rank, number,
                  kind, least);
}

/* Wait until all ranks have counted 'starts' of their starts. */
static void wait_for_all(int ranks, int starts)
{
    for (int i = 0; i < ranks; i++)
        wait_number(i, "starts", starts);
}

/* Ranks that wait to 'go' in one of their first 'starts' starts go on. */
static void let_ranks_go(int starts)
{
    char text[16];

    snprintf(text, sizeof text, "%d", starts);
    write_text("go.part", text);
    ck_assert_int_eq(rename(in_root("go.part"), in_root("0.go")), 0);
}

/*
 * The kernel kills the processes that the launcher leaves, within moments but not at once. The
 * limit is a count of polls: no process ends while the machine is paused.
 */
static void expect_gone(int process, double within)
{
    for (int left = (int)(within * 100); left > 0 && !process_is_gone(process); left--)
        pause_for(0.01);
    ck_assert_msg(process_is_gone(process), "process %d is still there", process);
}

static void expect_all_gone(int ranks, const char *kind, double within)
{
    for (int i = 0; i < ranks; i++)
        if (number_in(i, kind) > 0)
            expect_gone(number_in(i, kind), within);
}

static void remove_numbers(int ranks)
{
    for (int i = 0; i < ranks; i++) {
        char name[64];
        snprintf(name, sizeof name, "%d.pid", i);
        unlink(in_root(name));
        snprintf(name, sizeof name, "%d.starts", i);
        unlink(in_root(name));
    }
}

static int lines_with(const char *text, const char *phrase)
{
    int count = 0;

    for (const char *p = text; (p = strstr(p, phrase)) != NULL; p += strlen(phrase))
        count++;
    return count;
}

#define EXPECT_SAID(PHRASE) \
    ck_assert_msg(strstr(root_text("said"), PHRASE) != NULL, "'%s' is not in: %s", PHRASE, \
                  root_text("said"))

/*
 * Check the exit code, a phrase of the output, exactly one error line, and that no process is
 * left.
 */
static void expect_launch(const plan *p, int code, const char *phrase)
{
    int found = process_finish(begin_launcher(p));

    ck_assert_msg(found == code, "code %d, expected %d: %s", found, code, root_text("said"));
    if (phrase != NULL)
        EXPECT_SAID(phrase);
    ck_assert_msg(lines_with(root_text("said"), "error: ") == (code != 0), "%s", root_text("said"));
    expect_all_gone(p->ranks, "pid", 0);
}

/* ---- ends ------------------------------------------------------------------------------------ */

START_TEST(ranks_find_their_rank_info_in_the_environment)
{
    plan p = { .ranks = 3, .show_all = true, .word = { "*:environment" } };

    expect_launch(&p, 0, NULL);
    const char *out = root_text("out");
    ck_assert_ptr_nonnull(strstr(out, "[0] RANK=0\n"));
    ck_assert_ptr_nonnull(strstr(out, "[2] RANK=2\n"));
    ck_assert_ptr_nonnull(strstr(out, "[2] LOCAL_RANK=2\n"));
    ck_assert_int_eq(lines_with(out, "WORLD_SIZE=3\n"), 6); /* and LOCAL_WORLD_SIZE */
    ck_assert_int_eq(lines_with(out, "MASTER_ADDR=127.0.0.1\n"), 3);
    ck_assert_int_eq(lines_with(out, "listens=1\n"), 1);
    ck_assert_int_eq(lines_with(out, "PONS_STORE_SOCKET=\n"), 2);
    const char *token = strstr(out, "PONS_JOB_TOKEN=");
    char line[64];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(token, "\n"), token);
    ck_assert_uint_eq(strlen(line), strlen("PONS_JOB_TOKEN=") + 32);
    ck_assert_int_eq(lines_with(out, line), 3);
}
END_TEST

START_TEST(ranks_are_numbered_on_from_node_to_node)
{
    plan p = { .ranks = 2, .nodes = 3, .node = 1, .master = "node-a", .show_all = true,
               .word = { "*:environment" } };

    expect_launch(&p, 0, NULL);
    const char *out = root_text("out");
    ck_assert_ptr_nonnull(strstr(out, "[2] RANK=2\n"));
    ck_assert_ptr_nonnull(strstr(out, "[3] RANK=3\n"));
    ck_assert_ptr_nonnull(strstr(out, "[3] LOCAL_RANK=1\n"));
    ck_assert_ptr_nonnull(strstr(out, "[3] WORLD_SIZE=6\n"));
    ck_assert_ptr_nonnull(strstr(out, "[3] MASTER_ADDR=node-a\n[3] MASTER_PORT=29500\n"
                                      "[3] PONS_JOB_TOKEN=secret\n[3] PONS_STORE_SOCKET=\n"));
    ck_assert_ptr_null(strstr(out, "listens"));
}
END_TEST

START_TEST(a_rank_inherits_no_file_but_what_it_needs)
{
    plan p = { .ranks = 2, .show_all = true, .word = { "*:files" } };

    expect_launch(&p, 0, NULL);
    /* Rank 1 has input, output, error and the status page; rank 0 also has the store's socket. */
    ck_assert_int_eq(lines_with(root_text("out"), "[0] file "), 5);
    ck_assert_int_eq(lines_with(root_text("out"), "[1] file "), 4);
}
END_TEST

static const struct { const char *does; int code; const char *says; bool once; } ends[] = {
    { "note:5,signal:9", 137, "rank 1 was killed by SIGKILL in step 5 (step), last collective 50: "
      "all_reduce of 4096 bytes", false },
    { "note:5,wait:1.5,signal:9", 137, "in step 5 (step), last collective 50: all_reduce of 4096 "
      "bytes, noted ", false },
    { "note:3,wait:1.5,leave:0", 1, "all_reduce of 4096 bytes, noted ", false },
    { "note:7,wait:1.5,end:1=loss is nan", 1, " s before: loss is nan\n", false },
    { "signal:11", 139, "rank 1 was ended by SIGSEGV (11)\n", false },
    { "note:2,signal:6", 134, "rank 1 was ended by SIGABRT (6) in step 2", false },
    { "note:3,leave:0", 1, "rank 1 left before the end with exit code 0 in step 3", false },
    { "say:a word,leave:9", 9, "[1] a word\nerror: rank 1 left before the end with exit code 9\n",
      false },
    { "leave:127", 5, "error: rank 1 was ended by the loader of shared libraries", false },
    { "tell:5=out of memory for x,leave:7", 5, "error: rank 1: out of memory for x\nhint: ",
      false },
    { "end:4=case 'a' is cut", 4, "error: rank 1: case 'a' is cut\n", false },
    { "end:7=rank 1: nobody is there", 7, "error: rank 1: nobody is there\n", false },
    { "end:7=rank 10: has gone", 7, "error: rank 1: rank 10: has gone\n", false },
    { "note:7,end:1=loss is nan", 1, "error: rank 1 in step 7 (step), last collective 70: "
      "all_reduce of 4096 bytes: loss is nan\n", false },
};

START_TEST(the_root_cause_is_reported_once)
{
    char word[128];
    plan p = { .ranks = 3, .word = { word, "*:work" } };

    snprintf(word, sizeof word, "1:wait:0.05,%s", ends[_i].does);
    expect_launch(&p, ends[_i].code, ends[_i].says);
}
END_TEST

START_TEST(an_error_of_all_ranks_is_reported_without_a_rank)
{
    plan p = { .ranks = 4, .word = { "*:tell:3=x.ini:3: unknown key 'a',count,go,leave:3" } };

    pid_t launcher = begin_launcher(&p);
    wait_for_all(4, 1);
    let_ranks_go(1);
    ck_assert_int_eq(process_finish(launcher), 3);
    EXPECT_SAID("error: x.ini:3: unknown key 'a'\n");
    ck_assert_ptr_null(strstr(root_text("said"), "rank"));
}
END_TEST

/* A busy machine may delay one round by seconds, but not each one. */
enum { TIMED_ROUNDS = 4 };

START_TEST(unresponsive_ranks_are_killed_within_five_seconds)
{
    plan p = { .ranks = 4, .word = { "0:deaf,child,wait:60", "1:wait:0.2,signal:11", "2:wait:60",
                                     "3:signal:19" } };
    double took = 1e9;

    for (int round = 0; round < TIMED_ROUNDS && took > 5.2; round++) {
        double before = seconds_now();
        expect_launch(&p, 139, "rank 1 was ended by SIGSEGV");
        expect_all_gone(4, "child", 5);
        took = seconds_now() - before;
    }
    ck_assert_msg(took <= 5.2, "%g s", took);
}
END_TEST

START_TEST(the_children_of_a_rank_end_with_it)
{
    plan p = { .ranks = 2, .word = { "*:child" } };

    expect_launch(&p, 0, NULL);
    ck_assert_int_gt(number_in(1, "child"), 0);
    expect_all_gone(2, "child", 5);
}
END_TEST

/* Seconds from the end of the rank, 'after' seconds into the run, to that of the launcher. */
static double end_one(const plan *p, int victim, int number, double after, int code,
                      const char *cause)
{
    char line[96];

    remove_numbers(p->ranks);
    pid_t launcher = begin_launcher(p);
    wait_for_all(p->ranks, 1);
    pause_for(after);
    double before = seconds_now();
    kill(number_in(victim, "pid"), number);
    int found = process_finish(launcher);
    double took = seconds_now() - before;
    snprintf(line, sizeof line, "error: rank %d %s", victim, cause);
    ck_assert_msg(found == code, "code %d, expected %d: %s", found, code, root_text("said"));
    EXPECT_SAID(line);
    ck_assert_int_eq(lines_with(root_text("said"), "error: "), 1);
    expect_all_gone(p->ranks, "pid", 0);
    return took;
}

START_TEST(a_rank_may_be_killed_at_any_moment)
{
    static const struct { int number, code; const char *cause; } ways[] = {
        { SIGKILL, 137, "was killed by SIGKILL" }, { SIGSEGV, 139, "was ended by SIGSEGV" },
        { SIGABRT, 134, "was ended by SIGABRT" },
        { SIGUSR2, 1, "left before the end with exit code 0" },
    };
    plan p = { .ranks = 4, .word = { "*:listen:12,count,work" } };
    unsigned seed = (unsigned)seconds_now();
    int late = 0;

    for (int round = 0; round < 20; round++) {
        int victim = (int)(rand_r(&seed) % 4), way = round % 4;
        double after = 0.02 + (double)(rand_r(&seed) % 100) * 1e-3;
        late += end_one(&p, victim, ways[way].number, after, ways[way].code, ways[way].cause) > 5;
    }
    ck_assert_int_le(late, TIMED_ROUNDS - 1);
}
END_TEST

START_TEST(a_killed_launcher_leaves_no_process)
{
    plan p = { .ranks = 4, .word = { "*:deaf,count,work" } };
    pid_t launcher = begin_launcher(&p);

    wait_for_all(4, 1);
    kill(launcher, SIGKILL);
    ck_assert_int_eq(process_finish(launcher), 1000 + SIGKILL);
    expect_all_gone(4, "pid", 5);
}
END_TEST

START_TEST(after_the_first_success_other_ranks_have_time_to_end)
{
    plan p = { .ranks = 3, .word = { "0:wait:1.5", "*:wait:0" } };
    plan late = { .ranks = 2, .patience_s = 0.3, .word = { "1:wait:30", "*:wait:0" } };

    expect_launch(&p, 0, NULL);
    expect_launch(&late, 7, "rank 1 did not end within 0.3 s after the first of the others had");
}
END_TEST

START_TEST(a_program_that_cannot_run_is_named)
{
    plan p = { .ranks = 2, .program = "/nowhere/pons", .word = { "*:work" } };

    expect_launch(&p, 1, "cannot start '/nowhere/pons': No such file or directory");
}
END_TEST

/* ---- signals --------------------------------------------------------------------------------- */

START_TEST(signals_go_to_all_ranks)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGUSR1, SIGHUP };
    plan p = { .ranks = 3, .word = { "*:listen:15,listen:2,listen:10,count,wait:60" } };

    pid_t launcher = begin_launcher(&p);
    wait_for_all(3, 1);
    kill(launcher, numbers[_i]);
    ck_assert_int_eq(process_finish(launcher), PONS_INTERRUPTED);
    EXPECT_SAID("interrupted");
    expect_all_gone(3, "pid", 0);
}
END_TEST

START_TEST(a_rank_killed_by_a_forwarded_signal_is_interrupted)
{
    plan p = { .ranks = 2, .word = { "*:count,wait:60" } };

    pid_t launcher = begin_launcher(&p);
    wait_for_all(2, 1);
    kill(launcher, SIGUSR1);
    ck_assert_int_eq(process_finish(launcher), PONS_INTERRUPTED);
    expect_all_gone(2, "pid", 0);
}
END_TEST

/* After this the launcher has handled the first signal, and a later one counts as the second. */
static void wait_until_said(const char *phrase)
{
    for (int i = 0; i < 6000 && strstr(root_text("said"), phrase) == NULL; i++)
        pause_for(0.01);
    EXPECT_SAID(phrase);
}

/* The launcher of two ranks that ignore SIGTERM and have received it. */
static pid_t begin_unresponsive_ranks(void)
{
    plan p = { .ranks = 2, .word = { "*:deaf,count,wait:60" } };

    remove_numbers(2);
    pid_t launcher = begin_launcher(&p);
    wait_for_all(2, 1);
    kill(launcher, SIGTERM);
    wait_until_said("a second signal ends at once");
    return launcher;
}

/* Seconds from the second signal to the end; a third signal follows it where 'signals' says so. */
static double seconds_after_second_signal(int signals)
{
    pid_t launcher = begin_unresponsive_ranks();

    pause_for(0.3); /* no echo of the first */
    ck_assert(!process_is_gone(number_in(0, "pid")));
    double before = seconds_now();
    for (int i = 1; i < signals; i++)
        process_signal(launcher, SIGTERM);
    ck_assert_int_eq(process_finish(launcher), PONS_INTERRUPTED);
    expect_all_gone(2, "pid", 0);
    return seconds_now() - before;
}

START_TEST(a_second_signal_ends_unresponsive_ranks)
{
    double took = seconds_after_second_signal(2);

    ck_assert_msg(took > 4, "%g s", took); /* the ranks have time to save */
}
END_TEST

START_TEST(a_third_signal_kills_all_ranks_at_once)
{
    double took = 1e9;

    for (int round = 0; round < TIMED_ROUNDS && took > 3; round++)
        took = seconds_after_second_signal(3);
    ck_assert_msg(took <= 3, "%g s", took);
}
END_TEST

/* Not even a rank that survived the first signal counts as failed. */
START_TEST(a_rank_killed_by_the_second_signal_is_no_failure)
{
    pid_t launcher = begin_unresponsive_ranks();

    kill(launcher, SIGUSR1);
    ck_assert_int_eq(process_finish(launcher), PONS_INTERRUPTED);
    expect_all_gone(2, "pid", 0);
}
END_TEST

START_TEST(a_signal_handled_by_one_rank_is_no_failure)
{
    plan p = { .ranks = 2, .word = { "0:listen:10,count,wait:60", "1:count,wait:1,end:75=saved" } };

    pid_t launcher = begin_launcher(&p);
    wait_for_all(2, 1);
    kill(number_in(0, "pid"), SIGUSR1);
    ck_assert_int_eq(process_finish(launcher), PONS_INTERRUPTED);
    EXPECT_SAID("error: saved");
}
END_TEST

/* The rank stops again after it was woken to hear of the failure. */
START_TEST(a_stopped_rank_is_killed_too)
{
    plan p = { .ranks = 2,
               .word = { "0:count,signal:19,signal:19", "1:wait:0.5,end:7=rank 0 does not answer" }
    };

    expect_launch(&p, 7, "error: rank 1: rank 0 does not answer");
}
END_TEST

/* ---- stopped ranks --------------------------------------------------------------------------- */

/* This is the second of two nodes; its ranks 2 and 3 do what the word says. */
static plan second_node(double patience_s, int restarts, const char *word)
{
    return (plan){ .ranks = 2, .nodes = 2, .node = 1, .master = "node-a", .restarts = restarts,
                   .patience_s = patience_s, .word = { word } };
}

static void signal_ranks(int first, int count, int number)
{
    for (int k = first; k < first + count; k++)
        kill(number_in(k, "pid"), number);
}

static void expect_stopped(int first, int count)
{
    for (int k = first; k < first + count; k++)
        ck_assert_msg(process_state(number_in(k, "pid")) == 'T', "rank %d runs: %s", k,
                      root_text("said"));
}

#define WOKEN "all ranks of this node have been stopped for "

START_TEST(a_node_with_only_stopped_ranks_is_woken_to_end)
{
    plan p = second_node(1, 1, "*:count,until:2,signal:19,end:7=rank 0 has gone");

    ck_assert_int_eq(process_finish(begin_launcher(&p)), 0);
    EXPECT_SAID(WOKEN);
    EXPECT_SAID("rank 0 has gone\nrestart 1 of 1");
    for (int k = 2; k < 4; k++)
        ck_assert_int_eq(number_in(k, "starts"), 2);
}
END_TEST

/* A stopped rank stays stopped beside a running one, or without other nodes. */
START_TEST(a_stopped_rank_is_not_woken_beside_others_or_on_a_single_node)
{
    plan p = second_node(1, 0, "*:count,wait:60");
    int first = 2, stopped = 1;

    if (_i == 1) {
        p.nodes = 1;
        p.node = first = 0;
        stopped = 2;
    }
    pid_t launcher = begin_launcher(&p);
    for (int k = 0; k < 2; k++)
        wait_number(first + k, "starts", 1);
    signal_ranks(first, stopped, SIGSTOP);
    pause_for(5);
    expect_stopped(first, stopped);
    kill(launcher, SIGKILL);
    process_finish(launcher);
}
END_TEST

/* The time during which the launcher is stopped too does not count for its ranks. */
START_TEST(a_node_suspended_with_its_launcher_is_not_woken)
{
    plan p = second_node(3, 0, "*:count,wait:60");
    pid_t launcher = begin_launcher(&p);

    for (int k = 2; k < 4; k++)
        wait_number(k, "starts", 1);
    signal_ranks(2, 2, SIGSTOP);
    pause_for(0.5); /* the launcher has seen them */
    kill(launcher, SIGSTOP);
    pause_for(6);
    kill(launcher, SIGCONT);
    pause_for(0.5);
    expect_stopped(2, 2);
    kill(launcher, SIGKILL);
    process_finish(launcher);
}
END_TEST

/* The launcher wakes the ranks after a stop of four seconds; a preempted test repeats it. */
START_TEST(short_stops_of_a_node_do_not_add_up)
{
    plan p = second_node(2, 0, "*:count,wait:60");
    double longest = 1e9;

    for (int round = 0; round < TIMED_ROUNDS && longest > 3; round++) {
        unlink(in_root("2.starts"));
        unlink(in_root("3.starts"));
        pid_t launcher = begin_launcher(&p);
        for (int k = 2; k < 4; k++)
            wait_number(k, "starts", 1);
        longest = 0;
        for (int stop = 0; stop < 2; stop++) {
            double begun = seconds_now();
            signal_ranks(2, 2, SIGSTOP);
            pause_for(2.5);
            signal_ranks(2, 2, SIGCONT);
            double took = seconds_now() - begun;
            longest = took > longest ? took : longest;
            pause_for(0.3);
        }
        kill(launcher, SIGKILL);
        process_finish(launcher);
    }
    ck_assert_double_le(longest, 3);
    ck_assert_msg(strstr(root_text("said"), WOKEN) == NULL, "%s", root_text("said"));
}
END_TEST

/* ---- restarts -------------------------------------------------------------------------------- */

static const struct { const char *does; int restarts, code, starts; } again[] = {
    { "count,until:3,signal:9", 3, 0, 3 },         /* killed twice                                */
    { "count,until:2,end:7=gone", 1, 0, 2 },
    { "count,until:2,end:5=out of memory", 1, 0, 2 },
    { "count,until:2,leave:0", 1, 0, 2 },
    { "count,signal:9", 2, 137, 3 },               /* no restarts are left                        */
    { "count,until:2,signal:9", 0, 137, 1 },
    { "count,until:2,end:2=no such flag", 3, 2, 1 },
    { "count,until:2,end:3=wrong key", 3, 3, 1 },
    { "count,until:2,end:4=wrong case", 3, 4, 1 },
    { "count,until:2,end:6=wrong plugin", 3, 6, 1 },
    { "count,until:2,end:1=loss is nan", 3, 1, 1 },
    { "count,until:2,end:75=saved", 3, 75, 1 },
};

START_TEST(transient_failures_are_restarted)
{
    char word[128];
    plan p = { .ranks = 2, .restarts = again[_i].restarts, .word = { word, "*:wait:0.3" } };

    snprintf(word, sizeof word, "1:%s", again[_i].does);
    int found = process_finish(begin_launcher(&p));
    ck_assert_msg(found == again[_i].code, "code %d: %s", found, root_text("said"));
    ck_assert_int_eq(number_in(1, "starts"), again[_i].starts);
    ck_assert_int_eq(lines_with(root_text("said"), "\nrestart "),
                     again[_i].starts - 1);
}
END_TEST

START_TEST(a_signal_prevents_restarts)
{
    plan p = { .ranks = 2, .restarts = 5, .word = { "*:deaf,count,go,signal:9" } };

    pid_t launcher = begin_launcher(&p);
    wait_for_all(2, 1);
    kill(launcher, SIGTERM);
    wait_until_said("a second signal ends at once");
    let_ranks_go(1);
    ck_assert_int_eq(process_finish(launcher), 137);
    ck_assert_int_eq(number_in(0, "starts"), 1);
}
END_TEST

static int open_files(int process)
{
    char path[64];
    int count = 0;

    snprintf(path, sizeof path, "/proc/%d/fd", process);
    DIR *files = opendir(path);
    ck_assert_ptr_nonnull(files);
    for (struct dirent *e; (e = readdir(files)) != NULL; )
        count += e->d_name[0] != '.';
    closedir(files);
    return count;
}

/* All ranks run, and the launcher only waits for them. */
static int open_files_at_rest(int launcher)
{
    while (!process_is_gone(launcher) && process_state(launcher) != 'S')
        pause_for(0.001);
    return open_files(launcher);
}

START_TEST(restarts_leak_no_file_descriptors)
{
    enum { RANKS = 3, STARTS = 6 };
    plan p = { .ranks = RANKS, .restarts = STARTS, .show_all = true,
               .word = { "0:count,until:6,go,leave:9", "*:count,go" } };
    pid_t launcher = begin_launcher(&p);
    int first = 0, later = 0;

    for (int start = 1; start < STARTS; start++) {
        wait_for_all(RANKS, start);
        later = open_files_at_rest(launcher);
        first = start == 1 ? later : first;
        let_ranks_go(start);
    }
    let_ranks_go(STARTS);
    ck_assert_int_eq(process_finish(launcher), 0);
    ck_assert_msg(later <= first, "%d, then %d", first, later);
}
END_TEST

/* ---- output ---------------------------------------------------------------------------------- */

/* Count the lines; each is whole: its rank first, then one of the expected texts. */
static int count_whole_lines(char *text)
{
    int count = 0;

    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), count++) {
        int shown, number, rank, end = 0;
        ck_assert_msg(sscanf(line, "[%d] line %d of rank %d "
                             "................................................%n", &shown, &number,
                             &rank, &end) == 3 && line[end] == '\0' && shown == rank, "'%s'", line);
    }
    return count;
}

START_TEST(lines_of_ranks_are_never_mixed)
{
    plan p = { .ranks = 4, .show_all = true, .word = { "*:lines:500" } };

    expect_launch(&p, 0, NULL);
    ck_assert_int_eq(count_whole_lines(root_text("out")), 1000);
    ck_assert_int_eq(count_whole_lines(root_text("said")), 1000);
}
END_TEST

START_TEST(rank_0_alone_is_shown_as_it_writes)
{
    plan p = { .ranks = 3, .word = { "*:lines:20" } };

    expect_launch(&p, 0, NULL);
    ck_assert_int_eq(lines_with(root_text("out"), "of rank 0"), 10);
    ck_assert_int_eq(lines_with(root_text("said"), "of rank 0"), 10);
    ck_assert_ptr_null(strstr(root_text("out"), "["));
    ck_assert_ptr_null(strstr(root_text("out"), "rank 1"));
    ck_assert_ptr_null(strstr(root_text("said"), "rank 1"));
}
END_TEST

START_TEST(the_last_lines_of_a_crash_are_shown)
{
    plan p = { .ranks = 2, .word = { "0:work", "1:lines:200,say:corrupted list,signal:6" } };

    expect_launch(&p, 134, "[1] corrupted list\nerror: rank 1 was ended by SIGABRT");
    ck_assert_int_eq(lines_with(root_text("said"), "[1] "), 10);
    ck_assert_ptr_nonnull(strstr(root_text("said"), "[1] line 199 of rank 1"));
}
END_TEST

START_TEST(a_line_without_end_is_shown_too)
{
    launch_output *s = calloc(1, sizeof *s);
    int ends[2];
    char *text = NULL;
    size_t size;

    ck_assert_int_eq(pipe(ends), 0);
    s->file = ends[0];
    s->rank = 12;
    s->to = open_memstream(&text, &size);
    for (int i = 0; i < 20000; i++)
        ck_assert_int_eq(write(ends[1], "x", 1), 1);
    close(ends[1]);
    while (s->file >= 0)
        launch_output_read(s);
    fclose(s->to);
    ck_assert_uint_eq(size, 20000 + 3 * strlen("[12] \n"));
    ck_assert_int_eq(lines_with(text, "[12] "), 3);
    free(text);
    free(s);
}
END_TEST

/* ---- command line ---------------------------------------------------------------------------- */

static const struct { int code; const char *says, *word[8]; } usage[] = {
    { 2, "'pons launch' takes", { "-n", "2" } },
    { 2, "'pons launch' starts ranks of 'train', 'bench' or 'find-rate', not of 'predict'",
      { "--", "predict", "a" } },
    { 2, "-n = '0': expected an integer from 1 to 1024 or auto",
      { "-n", "0", "--", "train", "a.ini" } },
    { 2, "--node-rank 2 of --nodes 2: expected 0 to 1",
      { "--nodes=2", "--node-rank=2", "--master=a:1", "--", "train", "a.ini" } },
    { 2, "--nodes 2 needs --master HOST:PORT", { "--nodes=2", "--", "train", "a.ini" } },
    { 2, "--master 'a': expected HOST:PORT", { "--master=a", "--", "train", "a.ini" } },
    { 2, "--master 'a:0': expected HOST:PORT", { "--master=a:0", "--", "train", "a.ini" } },
    { 2, "--master ':1': expected HOST:PORT", { "--master=:1", "--", "train", "a.ini" } },
    { 2, "--master '::1:1': expected HOST:PORT", { "--master=::1:1", "--", "train", "a.ini" } },
    { 2, "--master '[::1]:x': expected HOST:PORT", { "--master=[::1]:x", "--", "train", "a.ini" } },
    { 2, "unknown flag '--fresch' of 'pons train'; did you mean '--fresh'?",
      { "--", "train", "a.ini", "--fresch" } },
    { 2, "'pons train' takes FILE.ini", { "--", "train" } },
    { 3, "b.ini", { "--", "train", "b.ini" } },
    { 3, "[distribute] mode = 'some'",
      { "--set", "distribute.mode=some", "--", "train", "a.ini" } },
};

START_TEST(usage_errors_are_reported_before_any_rank_starts)
{
    write_text("a.ini", "[experiment]\nname = a\n");
    int found = process_finish(process_start((const char *const[]){ "launch", usage[_i].word[0],
                                     usage[_i].word[1],
                                     usage[_i].word[2], usage[_i].word[3], usage[_i].word[4],
                                     usage[_i].word[5], usage[_i].word[6], NULL }));
    ck_assert_msg(found == usage[_i].code, "code %d: %s", found, root_text("said"));
    EXPECT_SAID(usage[_i].says);
    ck_assert_int_eq(lines_with(root_text("said"), "error: "), 1);
}
END_TEST

START_TEST(help_names_every_flag)
{
    EXPECT(0, NULL, "launch", "--help");
    const char *out = root_text("out");
    static const char *const phrases[] = { "-n, --ranks N|auto", "--nodes", "--node-rank",
                                           "--master", "--restarts", "--show" };
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        ck_assert_msg(strstr(out, phrases[i]) != NULL, "'%s' is not in: %s", phrases[i], out);
    EXPECT(0, NULL, "launch", "--", "train", "--help");
    ck_assert_ptr_nonnull(strstr(root_text("out"), "--fresh"));
}
END_TEST

START_TEST(as_many_ranks_start_as_devices_are_listed)
{
    write_text("a.ini", "[experiment]\nname = a\n[distribute]\ndevices = cpu:0,cpu:1,cpu:2\n");
    EXPECT(3, "3 ranks: [distribute] devices = cpu:0,cpu:1,cpu:2", "launch",
           "--", "train", "a.ini");
    EXPECT(3, "1 rank: [distribute] devices = cpu", "launch", "--set", "distribute.devices=cpu",
           "--", "train", "a.ini");
    ck_assert_int_eq(lines_with(root_text("said"), "error: "), 1);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("launch");

    tcase_add_checked_fixture(c, setup, remove_root);
    tcase_add_test(c, ranks_find_their_rank_info_in_the_environment);
    tcase_add_test(c, ranks_are_numbered_on_from_node_to_node);
    tcase_add_test(c, a_rank_inherits_no_file_but_what_it_needs);
    tcase_add_loop_test(c, the_root_cause_is_reported_once, 0, sizeof ends / sizeof *ends);
    tcase_add_test(c, an_error_of_all_ranks_is_reported_without_a_rank);
    tcase_add_test(c, unresponsive_ranks_are_killed_within_five_seconds);
    tcase_add_test(c, the_children_of_a_rank_end_with_it);
    tcase_add_test(c, a_rank_may_be_killed_at_any_moment);
    tcase_add_test(c, a_killed_launcher_leaves_no_process);
    tcase_add_test(c, after_the_first_success_other_ranks_have_time_to_end);
    tcase_add_test(c, a_program_that_cannot_run_is_named);
    tcase_add_loop_test(c, signals_go_to_all_ranks, 0, 4);
    tcase_add_test(c, a_rank_killed_by_a_forwarded_signal_is_interrupted);
    tcase_add_test(c, a_second_signal_ends_unresponsive_ranks);
    tcase_add_test(c, a_third_signal_kills_all_ranks_at_once);
    tcase_add_test(c, a_rank_killed_by_the_second_signal_is_no_failure);
    tcase_add_test(c, a_signal_handled_by_one_rank_is_no_failure);
    tcase_add_test(c, a_stopped_rank_is_killed_too);
    tcase_add_test(c, a_node_with_only_stopped_ranks_is_woken_to_end);
    tcase_add_loop_test(c, a_stopped_rank_is_not_woken_beside_others_or_on_a_single_node, 0,
                        2);
    tcase_add_test(c, a_node_suspended_with_its_launcher_is_not_woken);
    tcase_add_test(c, short_stops_of_a_node_do_not_add_up);
    tcase_add_loop_test(c, transient_failures_are_restarted, 0,
                        sizeof again / sizeof *again);
    tcase_add_test(c, a_signal_prevents_restarts);
    tcase_add_test(c, restarts_leak_no_file_descriptors);
    tcase_add_test(c, lines_of_ranks_are_never_mixed);
    tcase_add_test(c, rank_0_alone_is_shown_as_it_writes);
    tcase_add_test(c, the_last_lines_of_a_crash_are_shown);
    tcase_add_test(c, a_line_without_end_is_shown_too);
    tcase_add_loop_test(c, usage_errors_are_reported_before_any_rank_starts, 0,
                        sizeof usage / sizeof *usage);
    tcase_add_test(c, help_names_every_flag);
    tcase_add_test(c, as_many_ranks_start_as_devices_are_listed);
    return suite_run();
}
