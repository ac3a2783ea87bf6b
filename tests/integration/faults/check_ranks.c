/*
 * check_ranks.c - trainings under 'pons launch'. A run that is killed, stopped or interrupted, and
 * started again, ends with the bits of an undisturbed process.
 */
#include "support/process/disk_preload.h"
#include "support/process/free_port.h"
#include "support/process/process_state.h"
#include "support/run/ranks.h"
#include "support/soak.h"
#include "support/suite.h"

/* A checkpoint takes a quarter of a second, as long as dozens of steps. */
#define SLOW_DISK "/checkpoints fsync 0 0 0 30"

/* A run may finish or be late while this test is not scheduled. The test is then repeated. */
enum { ROUNDS = 5 };

static void setup(void)
{
    make_root();
    make_phantom();
    make_plain_run();
    add_plugin("transform", "held");
    search_first(in_root("plugins"));
}

#define EXPECT_SAID(PHRASE) \
    ck_assert_msg(strstr(root_text("said"), PHRASE) != NULL, "'%s' is not in: %s", PHRASE, \
                  root_text("said"))

/*
 * Exactly one line has the cause. The result is the time until then, without pauses of this test.
 */
static double expect_error(pid_t launcher, int code)
{
    double seconds;
    int found = process_finish_timed(launcher, &seconds);

    ck_assert_msg(found == code, "code %d, expected %d: %s", found, code, root_text("said"));
    ck_assert_msg(count_in(root_text("said"), "error: ") == 1, "%s", root_text("said"));
    return seconds;
}

/* The same command finishes the run, with the bits of an undisturbed run. */
static void expect_run_continues(const launch_words *l)
{
    expect_exit_code(start_launch(l), 0);
    ck_assert_int_eq(steps_of(l->name), 120);
    expect_same_state("plain", l->name);
}

static int random_step(void)
{
    return 2 + (int)((int64_t)(seconds_now() * 1e6) % 80);
}

/*
 * Every checkpoint is complete and every named one exists, whatever happened. 'saved': the newest
 * one is named and is that of the last recorded step.
 */
static void expect_whole_checkpoints(const char *name, bool saved)
{
    char path[160];
    int64_t newest = run_newest_checkpoint(name), last = run_marked_step(name, "last");

    snprintf(path, sizeof path, "runs/%s/checkpoints/step-%08d", name, (int)last);
    ck_assert_msg(last < 0 || root_has(path), "'last' is step %d, which is not there", (int)last);
    ck_assert_int_le(last, newest);
    if (saved) {
        ck_assert_int_eq(last, newest);
        ck_assert_int_eq(newest > 0 ? newest : 0, steps_of(name));
    }
}

/* ---- undisturbed ----------------------------------------------------------------------------- */

/* Epoch of each step, from the metrics. */
static void read_epochs(const char *run, int epoch[121])
{
    FILE *file = fopen(in_run(run, "metrics.jsonl"), "r");
    char *line = NULL;
    size_t room = 0;
    int step, found;

    ck_assert_ptr_nonnull(file);
    memset(epoch, 0, 121 * sizeof *epoch);
    while (getline(&line, &room, file) > 0)
        if (sscanf(line, "{\"kind\":\"step\",\"step\":%d,\"epoch\":%d", &step, &found) == 2
            && step >= 0 && step <= 120)
            epoch[step] = found;
    free(line);
    fclose(file);
}

START_TEST(ranks_count_epochs_as_one_process)
{
    launch_words l = { "epochs", 2, { NULL }, { NULL } };
    int plain[121], ranks[121];

    expect_exit_code(start_launch(&l), 0);
    read_epochs("plain", plain);
    read_epochs("epochs", ranks);
    for (int step = 1; step <= 120; step++) {
        ck_assert_int_eq(plain[step], (4 * step - 1) / 3 + 1); /* 4 of 3 cases a step */
        ck_assert_int_eq(ranks[step], plain[step]);
    }
}
END_TEST

START_TEST(ranks_end_with_the_bits_of_one_process)
{
    launch_words l = { "two", 2, { NULL }, { NULL } };

    expect_run_continues(&l);
    ck_assert_int_eq(count_in(root_text("said"), "done: "), 1); /* output of rank 0 only */
    expect_exit_code(start_launch(&l), 0);
    EXPECT_SAID("is finished");
}
END_TEST

START_TEST(a_file_with_mode_ddp_starts_its_own_ranks)
{
    EXPECT(0, NULL, "train", "ranks.ini", "--set", "experiment.name=own", "--set",
           "distribute.devices=cpu:0,cpu:1");
    EXPECT_SAID("2 ranks: [distribute] devices = cpu:0,cpu:1");
    expect_same_state("plain", "own");
}
END_TEST

START_TEST(launchers_of_two_nodes_make_one_run)
{
    char master[64];
    launch_words first = { "nodes", 1, { "--nodes=2", "--node-rank=0", master }, { NULL } };
    launch_words second = { "nodes", 1, { "--nodes=2", "--node-rank=1", master }, { NULL } };

    snprintf(master, sizeof master, "--master=127.0.0.1:%d", free_port());
    pid_t one = start_launch(&first), two = start_launch(&second);
    expect_exit_code(two, 0);
    expect_exit_code(one, 0);
    expect_same_state("plain", "nodes");
}
END_TEST

/* ---- killed ---------------------------------------------------------------------------------- */

/* Signal a rank. False: the rank has ended, and its process id 0 would be this test. */
static bool signal_rank(pid_t launcher, int rank, int number)
{
    pid_t process = find_rank(launcher, rank);

    return process > 0 && kill(process, number) == 0;
}

static const struct { int rank, number; } kills[] = {
    { 0, SIGKILL }, { 1, SIGKILL }, { 1, SIGSEGV }, { 0, SIGABRT },
};

START_TEST(a_killed_rank_is_started_again)
{
    launch_words l = { numbered_name("killed", _i), 2, { "--restarts=1" }, { NULL } };
    pid_t launcher = start_launch(&l);

    for (int round = 1; !wait_steps(launcher, l.name, random_step())
                        || !signal_rank(launcher, kills[_i].rank, kills[_i].number); round++) {
        expect_exit_code(launcher, 0);
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered_name("killed", 10 * round + _i);
        launcher = start_launch(&l);
    }
    expect_exit_code(launcher, 0);
    EXPECT_SAID("restart 1 of 1");
    expect_same_state("plain", l.name);
}
END_TEST

/* ---- killed, on two nodes -------------------------------------------------------------------- */

enum { NODES = 2, NODE_RANKS = 2 };

typedef struct nodes {
    char master[64];
    pid_t launcher[NODES];
} nodes;

static const char *const node_said[NODES] = { "said.0", "said.1" };

static void start_nodes(nodes *n, const char *name, const char *disk, const char *set)
{
    static const char *const number[NODES] = { "--node-rank=0", "--node-rank=1" };

    snprintf(n->master, sizeof n->master, "--master=127.0.0.1:%d", free_port());
    preload_disk(disk, NULL);
    for (int i = 0; i < NODES; i++) {
        launch_words l = { name, NODE_RANKS, { "--nodes=2", number[i], n->master, "--restarts=2" },
                           { set } };
        n->launcher[i] = start_launch_saying(node_said[i], &l);
    }
    preload_disk(NULL, NULL);
}

/* The ranks of each node are started again that many times, whichever node had the fault. */
static void expect_nodes_end(const nodes *n, int restarts)
{
    for (int i = 0; i < NODES; i++) {
        int code = process_finish(n->launcher[i]);
        const char *said = root_text(node_said[i]);
        ck_assert_msg(code == 0, "node %d, code %d: %s", i, code, said);
        ck_assert_msg(count_in(said, "restart ") == restarts, "node %d: %s", i, said);
    }
}

/* Kill any rank at any step. On the slow disk rank 0 ends late and is late to start again. */
static void kill_on_nodes(const char *prefix, int rank, const char *disk)
{
    const char *name = numbered_name(prefix, rank);
    nodes n;

    start_nodes(&n, name, disk, NULL);
    for (int round = 1; !wait_steps(n.launcher[0], name, random_step())
                        || !signal_rank(n.launcher[rank / NODE_RANKS], rank, SIGKILL); round++) {
        expect_nodes_end(&n, 0);
        ck_assert_int_lt(round, ROUNDS);
        name = numbered_name(prefix, 10 * round + rank);
        start_nodes(&n, name, disk, NULL);
    }
    expect_nodes_end(&n, 1);
    expect_same_state("plain", name);
}

START_TEST(a_rank_killed_on_one_of_two_nodes_costs_each_node_one_restart)
{
    kill_on_nodes("fell", _i, NULL);
}
END_TEST

START_TEST(a_rank_delayed_by_a_slow_disk_joins_the_others_late)
{
    kill_on_nodes("late", _i, SLOW_DISK);
}
END_TEST

/* ---- stopped, on two nodes ------------------------------------------------------------------- */

/* Stop all ranks of a node at once; false: one has ended. */
static bool stop_node(pid_t launcher, int node)
{
    pid_t rank[NODE_RANKS];
    bool all = true;

    for (int k = 0; k < NODE_RANKS; k++) {
        rank[k] = find_rank(launcher, node * NODE_RANKS + k);
        all = all && rank[k] > 0;
    }
    for (int k = 0; k < NODE_RANKS && all; k++)
        kill(rank[k], SIGSTOP);
    return all;
}

/*
 * The number of restarts depends on the machine: ranks that continue early are not missed by the
 * others.
 */
START_TEST(a_node_with_stopped_ranks_joins_the_others_again)
{
    const char *name = numbered_name("still", _i);
    nodes n;

    start_nodes(&n, name, NULL, "distribute.timeout_s=5");
    for (int round = 1; !wait_steps(n.launcher[0], name, random_step() / 4)
                        || !stop_node(n.launcher[_i], _i); round++) {
        expect_nodes_end(&n, 0);
        ck_assert_int_lt(round, ROUNDS);
        name = numbered_name("still", 10 * round + _i);
        start_nodes(&n, name, NULL, "distribute.timeout_s=5");
    }
    for (int i = 0; i < NODES; i++) {
        int code = process_finish(n.launcher[i]);
        ck_assert_msg(code == 0, "node %d, code %d: %s", i, code, root_text(node_said[i]));
        bool woken = strstr(root_text(node_said[i]), "all ranks of this node have been stopped")
                  != NULL;
        ck_assert_msg(woken == (i == _i), "node %d: %s", i, root_text(node_said[i]));
        printf("node %d: %d restarts\n", i, count_in(root_text(node_said[i]), "restart "));
    }
    expect_same_state("plain", name);
}
END_TEST

/* ---- killed, as pods ------------------------------------------------------------------------- */

/* A pod of Kubernetes: each rank is started by itself. */
static pid_t start_pod(const char *name, int rank, int size, int port)
{
    static const char *const said[] = { "said.0", "said.1", "said.2" };
    const struct { const char *name; int value; } numbers[] = {
        { "JOB_COMPLETION_INDEX", rank }, { "WORLD_SIZE", size }, { "MASTER_PORT", port }
    };
    char word[64], text[16];

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(text, sizeof text, "%d", numbers[i].value);
        setenv(numbers[i].name, text, 1);
    }
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("TORCHELASTIC_RUN_ID", "the-job", 1);
    snprintf(word, sizeof word, "experiment.name=%s", name);
    const char *const words[] = { "train", "ranks.ini", "--set", word, NULL };
    return process_start_to(said[rank], words);
}

static void expect_pod(pid_t pod, int rank, int code)
{
    char name[16];
    int found = process_finish(pod);

    snprintf(name, sizeof name, "said.%d", rank);
    ck_assert_msg(found == code, "pod %d, code %d, expected %d: %s", rank, found, code,
                  root_text(name));
}

/* Whether pod 1 was killed before the run finished. */
static bool kill_pod(const char *name)
{
    int port = free_port();
    pid_t first = start_pod(name, 0, 2, port), second = start_pod(name, 1, 2, port);

    if (wait_steps(first, name, random_step()))
        kill(second, SIGKILL);
    if (process_finish(second) != 1000 + SIGKILL) {
        process_finish(first);
        return false;
    }
    second = start_pod(name, 1, 2, port); /* perhaps before pod 0 has noticed */
    int code = process_finish(first);
    if (code == 0) {
        kill(second, SIGKILL);
        process_finish(second);
        return false;
    }
    ck_assert_msg(code == PONS_COMMUNICATION, "code %d: %s", code, root_text("said.0"));
    expect_pod(start_pod(name, 0, 2, port), 0, 0);
    expect_pod(second, 1, 0);
    return true;
}

START_TEST(a_restarted_pod_waits_for_the_others)
{
    const char *name = "pods";

    for (int round = 1; !kill_pod(name); round++) {
        ck_assert_int_lt(round, ROUNDS);
        name = numbered_name("pods", round);
    }
    expect_same_state("plain", name);
}
END_TEST

START_TEST(two_pods_of_one_rank_end_all_with_a_configuration_error)
{
    static const int rank[] = { 0, 1, 1 };
    int port = free_port();
    pid_t pod[3];

    for (int i = 0; i < 3; i++)
        pod[i] = start_pod("double", rank[i], 3, port);
    for (int i = 0; i < 3; i++)
        expect_pod(pod[i], rank[i], PONS_CONFIG);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(strstr(root_text(node_said[i]), "rank 1 is there twice: process ") != NULL,
                      "%s", root_text(node_said[i]));
}
END_TEST

/* ---- killed at any moment -------------------------------------------------------------------- */

/*
 * Time from the death of a rank to the end of all; -1: the run finished before. On a slow disk the
 * first checkpoint is then half written.
 */
static double kill_one_rank(const launch_words *l, int victim, int number, bool slow)
{
    preload_disk(slow ? SLOW_DISK : NULL, NULL);
    pid_t launcher = start_launch(l), rank[8];
    char said[64];

    preload_disk(NULL, NULL);
    ck_assert(wait_steps(launcher, l->name, steps_of(l->name) + (slow ? 12 : 3)));
    int count = find_ranks(launcher, rank, 8);
    if (count < l->ranks || !signal_rank(launcher, victim, number)) {
        process_finish(launcher);
        return -1;
    }
    double took = expect_error(launcher, 128 + number);
    snprintf(said, sizeof said, "error: rank %d was ", victim);
    EXPECT_SAID(said);
    EXPECT_SAID(" in step ");
    EXPECT_SAID("last collective");
    expect_processes_gone(rank, count, 0);
    expect_whole_checkpoints(l->name, false);
    return took;
}

START_TEST(a_rank_killed_at_any_moment_ends_all_and_changes_no_bit)
{
    static const int numbers[] = { SIGKILL, SIGSEGV, SIGABRT };
    launch_words l = { "four", 4, { NULL }, { NULL } };
    double slowest = 0;
    int wanted = soak_times(3, 200), ends = 0;

    /* A run that finishes, perhaps while this test is paused, is followed by a new one. */
    for (int i = 0; ends < wanted && i < 2 * wanted; i++) {
        if (steps_of(l.name) > 90) {
            expect_run_continues(&l);
            l.name = numbered_name("four", i);
        }
        /* Every second time it is rank 0, which writes: its first checkpoint, or a later one. */
        int victim = i % 2 == 0 ? 0 : 1 + i / 2 % (l.ranks - 1);
        double took = kill_one_rank(&l, victim, numbers[i % 3], i % 5 < 4);
        ends += took >= 0;
        slowest = took > slowest ? took : slowest;
    }
    printf("%d ends, the slowest after %.2f s\n", ends, slowest);
    ck_assert_int_eq(ends, wanted);
    ck_assert_double_le(slowest, 5);
    expect_run_continues(&l);
}
END_TEST

static bool kill_launcher(const launch_words *l)
{
    pid_t launcher = start_launch(l), rank[8];

    ck_assert(wait_steps(launcher, l->name, 12));
    int count = find_ranks(launcher, rank, 8);
    kill(launcher, SIGKILL);
    if (process_finish(launcher) != 1000 + SIGKILL || count < l->ranks)
        return false;
    expect_processes_gone(rank, count, 5);
    expect_whole_checkpoints(l->name, false);
    return true;
}

START_TEST(a_killed_launcher_leaves_no_rank_and_a_run_that_continues)
{
    launch_words l = { numbered_name("orphans", 0), 2, { NULL }, { NULL } };

    for (int round = 1; !kill_launcher(&l); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered_name("orphans", round);
    }
    expect_run_continues(&l);
}
END_TEST

/* ---- interrupted ----------------------------------------------------------------------------- */

static const struct { bool one; int number; } stops[] = {
    { false, SIGTERM }, { false, SIGINT }, { false, SIGUSR1 },
    { true, SIGTERM }, { true, SIGUSR1 },
};

/* Whether the run was interrupted by that many signals; false: it finished before. */
static bool expect_interrupted(const launch_words *l, pid_t launcher, const pid_t *rank, int count,
                               int signals)
{
    double seconds;
    int code = process_finish_timed(launcher, &seconds);

    if (code == 0 && steps_of(l->name) == 120)
        return false;
    ck_assert_msg(code == PONS_INTERRUPTED, "code %d: %s", code, root_text("said"));
    ck_assert_double_lt(seconds, 60); /* the grace period may pass, but no timeout */
    expect_processes_gone(rank, count, 0);
    ck_assert_int_lt(steps_of(l->name), 120);
    expect_whole_checkpoints(l->name, signals < 2); /* after two there may be no time */
    return true;
}

static bool stop_all_ranks(const launch_words *l, bool one, int victim, int number)
{
    pid_t launcher = start_launch(l), rank[8];

    ck_assert(wait_steps(launcher, l->name, random_step()));
    int count = find_ranks(launcher, rank, 8);
    if (one)
        signal_rank(launcher, victim, number);
    else
        kill(launcher, number);
    return expect_interrupted(l, launcher, rank, count, 1);
}

START_TEST(signals_stop_all_ranks_at_one_step)
{
    launch_words l = { numbered_name("stopped", _i), 2, { NULL }, { NULL } };

    for (int round = 1; !stop_all_ranks(&l, stops[_i].one, _i % 2, stops[_i].number); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered_name("stopped", 10 * round + _i);
    }
    expect_run_continues(&l);
}
END_TEST

/* All ranks wait forever in the loading of cases when the signal comes. */
static const struct { int victim, number; const char *flag; } early[] = {
    { 0, SIGTERM, NULL }, { 1, SIGUSR1, NULL }, { 1, SIGTERM, "--restarts=2" }
};

START_TEST(a_signal_to_one_rank_before_the_first_step_ends_all)
{
    static const char interrupted[] = "interrupted before the first step; the same command begins "
                                      "anew";
    launch_words l = { numbered_name("early", _i), 2, { early[_i].flag },
                       { "preprocess.steps=normalize held" } };
    pid_t launcher, rank[8];
    int count;

    unlink(in_root("held.0"));
    unlink(in_root("held.1"));
    launcher = start_launch(&l);
    for (int i = 0; i < 60000 && (access(in_root("held.0"), F_OK) != 0
                                  || access(in_root("held.1"), F_OK) != 0); i++)
        pause_for(0.001);
    count = find_ranks(launcher, rank, 8);
    signal_rank(launcher, early[_i].victim, early[_i].number);
    expect_exit_code(launcher, PONS_INTERRUPTED);
    ck_assert_int_eq(count_in(root_text("said"), interrupted), 1);
    ck_assert_int_eq(count_in(root_text("said"), "error: "), 0);
    expect_processes_gone(rank, count, 0);
    l.set[0] = NULL;
    expect_run_continues(&l);
}
END_TEST

static bool signal_run_twice(const launch_words *l)
{
    pid_t launcher = start_launch(l), rank[8];

    ck_assert(wait_steps(launcher, l->name, 8));
    int count = find_ranks(launcher, rank, 8);
    kill(launcher, SIGTERM);
    kill(launcher, SIGUSR1);
    return expect_interrupted(l, launcher, rank, count, 2);
}

START_TEST(a_second_signal_ends_at_once)
{
    launch_words l = { "twice", 2, { NULL }, { NULL } };

    for (int round = 1; !signal_run_twice(&l); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered_name("twice", round);
    }
    expect_run_continues(&l);
}
END_TEST

/*
 * The launcher or a rank gets one or two signals at some moment after the start. The result is
 * whether the run was interrupted.
 */
static bool signal_run(const launch_words *l, bool one, int round)
{
    static const int numbers[] = { SIGTERM, SIGUSR1 };
    pid_t launcher = start_launch(l), rank[8];
    int signals = 1 + (round % 3 == 2);

    ck_assert(wait_steps(launcher, l->name, steps_of(l->name) + 1));
    int count = find_ranks(launcher, rank, 8);
    pause_for(5e-4 * random_step());
    for (int i = 0; i < signals; i++)
        if (one)
            signal_rank(launcher, random_step() % l->ranks, numbers[(round + i) % 2]);
        else
            kill(launcher, numbers[(round + i) % 2]);
    return expect_interrupted(l, launcher, rank, count, signals);
}

START_TEST(a_signal_at_any_moment_stops_all_ranks)
{
    const char *name = _i == 0 ? "asked" : "asked-one";
    int wanted = soak_times(3, 250), stops = 0, runs = 0;
    launch_words l = { numbered_name(name, runs), 2, { NULL }, { NULL } };

    for (int round = 0; stops < wanted && round < 4 * wanted; round++) {
        stops += signal_run(&l, _i == 1, round) && round % 3 < 2;  /* two signals end any phase */
        if (steps_of(l.name) > 90) {
            expect_run_continues(&l);
            l.name = numbered_name(name, ++runs);
        }
    }
    printf("%d stops, %d runs to the end\n", stops, runs);
    ck_assert_int_eq(stops, wanted);
    expect_run_continues(&l);
}
END_TEST

/* ---- suspended ------------------------------------------------------------------------------- */

/* Wait until both have stopped; false: one has ended. */
static bool wait_ranks_stopped(const pid_t rank[2])
{
    for (int i = 0; i < 2; i++)
        for (int left = 6000; process_state(rank[i]) != 'T'; left--) {
            if (process_is_gone(rank[i]))
                return false;
            ck_assert_int_gt(left, 0);
            pause_for(0.01);
        }
    return true;
}

/* Ctrl-Z for longer than the timeout, then fg. */
static bool suspend_run(const launch_words *l)
{
    pid_t launcher = start_launch(l), rank[8];
    int status;

    ck_assert(wait_steps(launcher, l->name, 10));
    int count = find_ranks(launcher, rank, 8);
    kill(launcher, SIGTSTP);
    ck_assert_int_eq(waitpid(launcher, &status, WUNTRACED), launcher);
    if (!WIFSTOPPED(status))
        return false;
    bool stopped = count == 2 && wait_ranks_stopped(rank);
    int steps = steps_of(l->name);
    pause_for(stopped ? 5 : 0);
    ck_assert_int_eq(steps_of(l->name), steps);
    kill(launcher, SIGCONT);
    expect_exit_code(launcher, 0);
    return stopped;
}

START_TEST(a_suspended_run_continues_undisturbed)
{
    launch_words l = { "suspended", 2, { NULL }, { "distribute.timeout_s=3" } };

    for (int round = 1; !suspend_run(&l); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered_name("suspended", round);
    }
    expect_same_state("plain", l.name);
}
END_TEST

/* ---- hanging --------------------------------------------------------------------------------- */

/* Time from the stop of a rank to the end of all; negative: the run finished before. */
static double stop_one_rank(const launch_words *l, int victim)
{
    pid_t launcher = start_launch(l), rank[8];
    char said[32];

    ck_assert(wait_steps(launcher, l->name, 3));
    int count = find_ranks(launcher, rank, 8);
    if (count < l->ranks || !signal_rank(launcher, victim, SIGSTOP)) {
        process_finish(launcher);
        return -1;
    }
    double took = expect_error(launcher, PONS_COMMUNICATION);
    snprintf(said, sizeof said, "rank %d", victim);
    EXPECT_SAID(said);
    expect_processes_gone(rank, count, 0);
    return took;
}

START_TEST(a_stopped_rank_is_found_in_time)
{
    launch_words l = { NULL, 2, { NULL }, { "distribute.timeout_s=3" } };
    double took = -1;

    /* The rank is found after timeout_s + 2 s. It is continued then and ends like the others. */
    for (int round = 0; round < ROUNDS && (took < 0 || took > 3 + 2 + 1); round++) {
        l.name = numbered_name("hung", 10 * round + _i);
        took = stop_one_rank(&l, _i);
    }
    ck_assert_msg(took >= 0 && took <= 3 + 2 + 1, "%g s", took);
    l.set[0] = NULL;
    expect_run_continues(&l);
}
END_TEST

/* ---- the shared cache of a machine ----------------------------------------------------------- */

enum { MAPPED_MAX = 64 };

static int compare_inodes(const void *a, const void *b)
{
    const unsigned long *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Inodes of a process's mapped files whose names contain 'phrase', ascending. */
static int mapped_files(pid_t process, const char *phrase, unsigned long inode[MAPPED_MAX])
{
    char path[64], line[4096];
    int count = 0;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strstr(line, phrase) != NULL && count < MAPPED_MAX)
            count += sscanf(line, "%*x-%*x %*s %*s %*s %lu", &inode[count]) == 1;
    if (file != NULL)
        fclose(file);
    qsort(inode, (size_t)count, sizeof *inode, compare_inodes);
    return count;
}

static const struct { const char *name, *cache, *mapped; int files; } caches[] = {
    { "shares", "data.cache=memory", "memfd:pons cache", 4 }, /* a memfd for each case */
    { "disk", "data.cache=disk", ".case", 4 },
    { "nothing", "data.cache=none", "memfd:pons cache", 0 },
};

/* Whether both ranks existed while their maps were read. */
static bool compare_rank_caches(const launch_words *l, const char *mapped, int files)
{
    unsigned long first[MAPPED_MAX], second[MAPPED_MAX];
    pid_t launcher = start_launch(l), rank[8];

    ck_assert(wait_steps(launcher, l->name, 2));
    int count = find_ranks(launcher, rank, 8);
    for (int i = 0; i < count; i++)
        kill(rank[i], SIGSTOP);
    if (count < 2 || !wait_ranks_stopped(rank)) {
        for (int i = 0; i < count; i++)
            kill(rank[i], SIGCONT);
        process_finish(launcher);
        return false;
    }
    ck_assert_int_eq(mapped_files(rank[0], mapped, first), files);
    ck_assert_int_eq(mapped_files(rank[1], mapped, second), files);
    ck_assert_mem_eq(first, second, (size_t)files * sizeof *first);
    for (int i = 0; i < count; i++)
        kill(rank[i], SIGKILL);
    expect_exit_code(launcher, 128 + SIGKILL);
    expect_processes_gone(rank, count, 5);
    return true;
}

START_TEST(ranks_of_a_machine_share_a_cache_that_ends_with_them)
{
    launch_words l = { caches[_i].name, 2, { NULL }, { caches[_i].cache } };

    for (int round = 1; !compare_rank_caches(&l, caches[_i].mapped, caches[_i].files); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered_name(caches[_i].name, round);
    }
    expect_run_continues(&l);
}
END_TEST

START_TEST(a_case_that_cannot_be_read_ends_all_ranks_with_one_line)
{
    launch_words l = { "damaged", 4, { NULL }, { "data.source=damaged" } };

    shell("cp -r heads damaged && truncate -s 3000 damaged/imagesTr/phantom_00[123].nii.gz");
    expect_error(start_launch(&l), PONS_DATA);
    EXPECT_SAID(" failed: case 'phantom_001': cannot read");
}
END_TEST

int main(void)
{
    bool joins_nodes = suite_has_plugin("comm/gloo");
    TCase *c = suite_new("ranks");

    tcase_add_unchecked_fixture(c, setup, remove_root);
    tcase_add_test(c, ranks_count_epochs_as_one_process);
    tcase_add_test(c, ranks_end_with_the_bits_of_one_process);
    tcase_add_test(c, a_file_with_mode_ddp_starts_its_own_ranks);
    suite_add_test_if(c, joins_nodes, "gloo", launchers_of_two_nodes_make_one_run);
    tcase_add_loop_test(c, a_killed_rank_is_started_again, 0, sizeof kills / sizeof *kills);
    suite_add_loop_test_if(c, joins_nodes, "gloo",
                           a_rank_killed_on_one_of_two_nodes_costs_each_node_one_restart, 0,
                           NODES * NODE_RANKS);
    suite_add_loop_test_if(c, joins_nodes, "gloo",
                           a_rank_delayed_by_a_slow_disk_joins_the_others_late, 0,
                           NODES * NODE_RANKS);
    suite_add_loop_test_if(c, joins_nodes, "gloo",
                           a_node_with_stopped_ranks_joins_the_others_again, 0, NODES);
    suite_add_test_if(c, joins_nodes, "gloo", a_restarted_pod_waits_for_the_others);
    suite_add_test_if(c, joins_nodes, "gloo",
                      two_pods_of_one_rank_end_all_with_a_configuration_error);
    tcase_add_test(c, a_rank_killed_at_any_moment_ends_all_and_changes_no_bit);
    tcase_add_test(c, a_killed_launcher_leaves_no_rank_and_a_run_that_continues);
    tcase_add_loop_test(c, signals_stop_all_ranks_at_one_step, 0, sizeof stops / sizeof *stops);
    tcase_add_loop_test(c, a_signal_to_one_rank_before_the_first_step_ends_all, 0,
                        sizeof early / sizeof *early);
    tcase_add_loop_test(c, a_signal_at_any_moment_stops_all_ranks, 0, 2);
    tcase_add_test(c, a_second_signal_ends_at_once);
    tcase_add_test(c, a_suspended_run_continues_undisturbed);
    tcase_add_loop_test(c, a_stopped_rank_is_found_in_time, 0, 2);
    tcase_add_loop_test(c, ranks_of_a_machine_share_a_cache_that_ends_with_them, 0,
                        sizeof caches / sizeof *caches);
    tcase_add_test(c, a_case_that_cannot_be_read_ends_all_ranks_with_one_line);
    return suite_run();
}
