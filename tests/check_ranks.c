/*
 * check_ranks.c - trainings under 'pons launch': what is killed, stopped or interrupted and started
 * again ends with the bits of one process that nobody disturbed.
 */
#include "disk_preload.h"
#include "free_port.h"
#include "process_state.h"
#include "ranks.h"
#include "soak.h"
#include "suite.h"

/* A checkpoint takes a quarter of a second, as long as dozens of steps. */
#define SLOW_DISK "/checkpoints fsync 0 0 0 30"

/* While this test is put aside a run may come to its end, or be late: then once more. */
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
    ck_assert_msg(strstr(text_of("said"), PHRASE) != NULL, "'%s' is not in: %s", PHRASE, \
                  text_of("said"))

static void expect_end(pid_t launcher, int code)
{
    int found = finish(launcher);

    ck_assert_msg(found == code, "code %d, expected %d: %s", found, code, text_of("said"));
}

/* Exactly one line says why. Seconds until then, of those in which this test ran. */
static double expect_error(pid_t launcher, int code)
{
    double seconds;
    int found = finish_counting(launcher, &seconds);

    ck_assert_msg(found == code, "code %d, expected %d: %s", found, code, text_of("said"));
    ck_assert_msg(count_in(text_of("said"), "error: ") == 1, "%s", text_of("said"));
    return seconds;
}

/* The same command again ends the run, with the bits that it would have had. */
static void expect_goes_on(const launch_words *l)
{
    expect_end(start_launch(l), 0);
    ck_assert_int_eq(steps_of(l->name), 120);
    expect_same_state("plain", l->name);
}

/* Iterations of a test have runs of their own. */
static const char *numbered(const char *name, int i)
{
    static char text[32];

    snprintf(text, sizeof text, "%s-%d", name, i);
    return text;
}

static int random_step(void)
{
    return 2 + (int)((int64_t)(seconds_now() * 1e6) % 80);
}

/*
 * Whatever came in between, every checkpoint is whole, and none is named that is not there.
 * 'saved': the newest one is named, and is of the last step that was recorded.
 */
static void expect_whole(const char *name, bool saved)
{
    char path[160];
    int64_t newest = newest_whole(name), last = marked(name, "last");

    snprintf(path, sizeof path, "runs/%s/checkpoints/step-%08d", name, (int)last);
    ck_assert_msg(last < 0 || exists(path), "'last' is step %d, which is not there", (int)last);
    ck_assert_int_le(last, newest);
    if (saved) {
        ck_assert_int_eq(last, newest);
        ck_assert_int_eq(newest > 0 ? newest : 0, steps_of(name));
    }
}

/* ---- undisturbed ----------------------------------------------------------------------------- */

/* Epoch by step, as the metrics say. */
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

    expect_end(start_launch(&l), 0);
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

    expect_goes_on(&l);
    ck_assert_int_eq(count_in(text_of("said"), "done: "), 1); /* rank 0 alone is shown */
    expect_end(start_launch(&l), 0);
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
    expect_end(two, 0);
    expect_end(one, 0);
    expect_same_state("plain", "nodes");
}
END_TEST

/* ---- killed ---------------------------------------------------------------------------------- */

/* Signal a rank; false where it has ended already: process 0 would be this test. */
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
    launch_words l = { numbered("killed", _i), 2, { "--restarts=1" }, { NULL } };
    pid_t launcher = start_launch(&l);

    for (int round = 1; !wait_steps(launcher, l.name, random_step())
                        || !signal_rank(launcher, kills[_i].rank, kills[_i].number); round++) {
        expect_end(launcher, 0);
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered("killed", 10 * round + _i);
        launcher = start_launch(&l);
    }
    expect_end(launcher, 0);
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

/* On each node all start once more, whoever was first. */
static void expect_nodes_end(const nodes *n, int restarts)
{
    for (int i = 0; i < NODES; i++) {
        int code = finish(n->launcher[i]);
        const char *said = text_of(node_said[i]);
        ck_assert_msg(code == 0, "node %d, code %d: %s", i, code, said);
        ck_assert_msg(count_in(said, "restart ") == restarts, "node %d: %s", i, said);
    }
}

/* Kill one of all ranks at any step; on this disk rank 0 ends late, and is late to come back. */
static void kill_on_nodes(const char *prefix, int rank, const char *disk)
{
    const char *name = numbered(prefix, rank);
    nodes n;

    start_nodes(&n, name, disk, NULL);
    for (int round = 1; !wait_steps(n.launcher[0], name, random_step())
                        || !signal_rank(n.launcher[rank / NODE_RANKS], rank, SIGKILL); round++) {
        expect_nodes_end(&n, 0);
        ck_assert_int_lt(round, ROUNDS);
        name = numbered(prefix, 10 * round + rank);
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

START_TEST(a_rank_that_a_slow_disk_keeps_meets_the_others_late)
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
 * How many restarts that takes is the machine's to say: ranks that are woken early are not missed.
 */
START_TEST(a_node_whose_ranks_are_all_stopped_joins_the_others_again)
{
    const char *name = numbered("still", _i);
    nodes n;

    start_nodes(&n, name, NULL, "distribute.timeout_s=5");
    for (int round = 1; !wait_steps(n.launcher[0], name, random_step() / 4)
                        || !stop_node(n.launcher[_i], _i); round++) {
        expect_nodes_end(&n, 0);
        ck_assert_int_lt(round, ROUNDS);
        name = numbered("still", 10 * round + _i);
        start_nodes(&n, name, NULL, "distribute.timeout_s=5");
    }
    for (int i = 0; i < NODES; i++) {
        int code = finish(n.launcher[i]);
        ck_assert_msg(code == 0, "node %d, code %d: %s", i, code, text_of(node_said[i]));
        bool woken = strstr(text_of(node_said[i]), "all ranks of this node have been stopped")
                  != NULL;
        ck_assert_msg(woken == (i == _i), "node %d: %s", i, text_of(node_said[i]));
        printf("node %d: %d restarts\n", i, count_in(text_of(node_said[i]), "restart "));
    }
    expect_same_state("plain", name);
}
END_TEST

/* ---- killed, as pods ------------------------------------------------------------------------- */

/* As Kubernetes starts them, each by itself. */
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
    return start_saying(said[rank], words);
}

static void expect_pod(pid_t pod, int rank, int code)
{
    char name[16];
    int found = finish(pod);

    snprintf(name, sizeof name, "said.%d", rank);
    ck_assert_msg(found == code, "pod %d, code %d, expected %d: %s", rank, found, code,
                  text_of(name));
}

/* Whether pod 1 was killed before the run came to its end. */
static bool kill_pod(const char *name)
{
    int port = free_port();
    pid_t first = start_pod(name, 0, 2, port), second = start_pod(name, 1, 2, port);

    if (wait_steps(first, name, random_step()))
        kill(second, SIGKILL);
    if (finish(second) != 1000 + SIGKILL) {
        finish(first);
        return false;
    }
    second = start_pod(name, 1, 2, port); /* perhaps before pod 0 knows */
    int code = finish(first);
    if (code == 0) {
        kill(second, SIGKILL);
        finish(second);
        return false;
    }
    ck_assert_msg(code == PONS_COMMUNICATION, "code %d: %s", code, text_of("said.0"));
    expect_pod(start_pod(name, 0, 2, port), 0, 0);
    expect_pod(second, 1, 0);
    return true;
}

START_TEST(a_pod_that_comes_back_at_once_waits_for_the_others)
{
    const char *name = "pods";

    for (int round = 1; !kill_pod(name); round++) {
        ck_assert_int_lt(round, ROUNDS);
        name = numbered("pods", round);
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
        ck_assert_msg(strstr(text_of(node_said[i]), "rank 1 is there twice: process ") != NULL,
                      "%s", text_of(node_said[i]));
}
END_TEST

/* ---- killed at any moment -------------------------------------------------------------------- */

/*
 * Seconds from the death of a rank to the end of all; -1: it had come to its end before. On a slow
 * disk the first checkpoint is half written then.
 */
static double kill_one(const launch_words *l, int victim, int number, bool slow)
{
    preload_disk(slow ? SLOW_DISK : NULL, NULL);
    pid_t launcher = start_launch(l), rank[8];
    char said[64];

    preload_disk(NULL, NULL);
    ck_assert(wait_steps(launcher, l->name, steps_of(l->name) + (slow ? 12 : 3)));
    int count = find_ranks(launcher, rank, 8);
    if (count < l->ranks || !signal_rank(launcher, victim, number)) {
        finish(launcher);
        return -1;
    }
    double took = expect_error(launcher, 128 + number);
    snprintf(said, sizeof said, "error: rank %d was ", victim);
    EXPECT_SAID(said);
    EXPECT_SAID(" in step ");
    EXPECT_SAID("last collective");
    expect_processes_gone(rank, count, 0);
    expect_whole(l->name, false);
    return took;
}

START_TEST(a_rank_killed_at_any_moment_ends_all_and_costs_nothing)
{
    static const int numbers[] = { SIGKILL, SIGSEGV, SIGABRT };
    launch_words l = { "four", 4, { NULL }, { NULL } };
    double slowest = 0;
    int wanted = soak_times(3, 200), ends = 0;

    /* A run that has ended, or ends while this test is paused, begins anew under another name. */
    for (int i = 0; ends < wanted && i < 2 * wanted; i++) {
        if (steps_of(l.name) > 90) {
            expect_goes_on(&l);
            l.name = numbered("four", i);
        }
        /* Each second time rank 0, which writes: its first checkpoint, or one beside others. */
        int victim = i % 2 == 0 ? 0 : 1 + i / 2 % (l.ranks - 1);
        double took = kill_one(&l, victim, numbers[i % 3], i % 5 < 4);
        ends += took >= 0;
        slowest = took > slowest ? took : slowest;
    }
    printf("%d ends, the slowest after %.2f s\n", ends, slowest);
    ck_assert_int_eq(ends, wanted);
    ck_assert_double_le(slowest, 5);
    expect_goes_on(&l);
}
END_TEST

static bool kill_launcher(const launch_words *l)
{
    pid_t launcher = start_launch(l), rank[8];

    ck_assert(wait_steps(launcher, l->name, 12));
    int count = find_ranks(launcher, rank, 8);
    kill(launcher, SIGKILL);
    if (finish(launcher) != 1000 + SIGKILL || count < l->ranks)
        return false;
    expect_processes_gone(rank, count, 5);
    expect_whole(l->name, false);
    return true;
}

START_TEST(a_killed_launcher_leaves_nobody_and_a_run_that_goes_on)
{
    launch_words l = { numbered("orphans", 0), 2, { NULL }, { NULL } };

    for (int round = 1; !kill_launcher(&l); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered("orphans", round);
    }
    expect_goes_on(&l);
}
END_TEST

/* ---- interrupted ----------------------------------------------------------------------------- */

static const struct { bool one; int number; } stops[] = {
    { false, SIGTERM }, { false, SIGINT }, { false, SIGUSR1 },
    { true, SIGTERM }, { true, SIGUSR1 },
};

/* Whether the run was interrupted, by so many signals, or came to its end before. */
static bool expect_interrupted(const launch_words *l, pid_t launcher, const pid_t *rank, int count,
                               int signals)
{
    double seconds;
    int code = finish_counting(launcher, &seconds);

    if (code == 0 && steps_of(l->name) == 120)
        return false;
    ck_assert_msg(code == PONS_INTERRUPTED, "code %d: %s", code, text_of("said"));
    ck_assert_double_lt(seconds, 60); /* it is the grace that may pass, not a hang */
    expect_processes_gone(rank, count, 0);
    ck_assert_int_lt(steps_of(l->name), 120);
    expect_whole(l->name, signals < 2); /* there may have been no time */
    return true;
}

static bool stop_all(const launch_words *l, bool one, int victim, int number)
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
    launch_words l = { numbered("stopped", _i), 2, { NULL }, { NULL } };

    for (int round = 1; !stop_all(&l, stops[_i].one, _i % 2, stops[_i].number); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered("stopped", 10 * round + _i);
    }
    expect_goes_on(&l);
}
END_TEST

/* All ranks are reading cases when it comes, and would for good. */
static const struct { int victim, number; const char *flag; } early[] = {
    { 0, SIGTERM, NULL }, { 1, SIGUSR1, NULL }, { 1, SIGTERM, "--restarts=2" }
};

START_TEST(a_signal_to_one_rank_before_the_first_step_ends_all)
{
    launch_words l = { numbered("early", _i), 2, { early[_i].flag },
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
    expect_error(launcher, PONS_INTERRUPTED);
    EXPECT_SAID("interrupted before the first step; start it again");
    expect_processes_gone(rank, count, 0);
    l.set[0] = NULL;
    expect_goes_on(&l);
}
END_TEST

static bool stop_twice(const launch_words *l)
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

    for (int round = 1; !stop_twice(&l); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered("twice", round);
    }
    expect_goes_on(&l);
}
END_TEST

/* To the launcher or one rank, once or twice, at a moment after the start. Whether it was heard. */
static bool ask_to_stop(const launch_words *l, bool one, int round)
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

START_TEST(asked_to_stop_at_any_moment_all_ranks_do)
{
    const char *name = _i == 0 ? "asked" : "asked-one";
    int wanted = soak_times(3, 250), stops = 0, runs = 0;
    launch_words l = { numbered(name, runs), 2, { NULL }, { NULL } };

    for (int round = 0; stops < wanted && round < 4 * wanted; round++) {
        stops += ask_to_stop(&l, _i == 1, round) && round % 3 < 2; /* twice: that ends anything */
        if (steps_of(l.name) > 90) {
            expect_goes_on(&l);
            l.name = numbered(name, ++runs);
        }
    }
    printf("%d stops, %d runs to the end\n", stops, runs);
    ck_assert_int_eq(stops, wanted);
    expect_goes_on(&l);
}
END_TEST

/* ---- suspended ------------------------------------------------------------------------------- */

/* Until both have stopped; false: one has ended. */
static bool wait_stopped(const pid_t rank[2])
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

/* Ctrl-Z, longer than the timeout, and fg. */
static bool suspend(const launch_words *l)
{
    pid_t launcher = start_launch(l), rank[8];
    int status;

    ck_assert(wait_steps(launcher, l->name, 10));
    int count = find_ranks(launcher, rank, 8);
    kill(launcher, SIGTSTP);
    ck_assert_int_eq(waitpid(launcher, &status, WUNTRACED), launcher);
    if (!WIFSTOPPED(status))
        return false;
    bool stopped = count == 2 && wait_stopped(rank);
    int steps = steps_of(l->name);
    pause_for(stopped ? 5 : 0);
    ck_assert_int_eq(steps_of(l->name), steps);
    kill(launcher, SIGCONT);
    expect_end(launcher, 0);
    return stopped;
}

START_TEST(a_suspended_run_goes_on_as_if_nothing_had_been)
{
    launch_words l = { "suspended", 2, { NULL }, { "distribute.timeout_s=3" } };

    for (int round = 1; !suspend(&l); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered("suspended", round);
    }
    expect_same_state("plain", l.name);
}
END_TEST

/* ---- hanging --------------------------------------------------------------------------------- */

/* Seconds from the stop of a rank to the end of all; negative: it had come to its end before. */
static double stop_one(const launch_words *l, int victim)
{
    pid_t launcher = start_launch(l), rank[8];
    char said[32];

    ck_assert(wait_steps(launcher, l->name, 3));
    int count = find_ranks(launcher, rank, 8);
    if (count < l->ranks || !signal_rank(launcher, victim, SIGSTOP)) {
        finish(launcher);
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

    /* timeout_s + 2 s until it is found; then it is woken up and ends like the others, at once. */
    for (int round = 0; round < ROUNDS && (took < 0 || took > 3 + 2 + 1); round++) {
        l.name = numbered("hung", 10 * round + _i);
        took = stop_one(&l, _i);
    }
    ck_assert_msg(took >= 0 && took <= 3 + 2 + 1, "%g s", took);
    l.set[0] = NULL;
    expect_goes_on(&l);
}
END_TEST

/* ---- one cache of a machine ------------------------------------------------------------------ */

enum { MAPPED_MAX = 64 };

static int compare_inodes(const void *a, const void *b)
{
    const unsigned long *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Inodes of the files that a process maps whose name holds 'phrase', ascending. */
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
    { "shares", "data.cache=memory", "memfd:pons cache", 4 }, /* pieces: one for each case */
    { "disk", "data.cache=disk", ".case", 4 },
    { "nothing", "data.cache=none", "memfd:pons cache", 0 },
};

/* Whether all ranks were there to be looked at. */
static bool look_at_caches(const launch_words *l, const char *mapped, int files)
{
    unsigned long first[MAPPED_MAX], second[MAPPED_MAX];
    pid_t launcher = start_launch(l), rank[8];

    ck_assert(wait_steps(launcher, l->name, 2));
    int count = find_ranks(launcher, rank, 8);
    for (int i = 0; i < count; i++)
        kill(rank[i], SIGSTOP);
    if (count < 2 || !wait_stopped(rank)) {
        for (int i = 0; i < count; i++)
            kill(rank[i], SIGCONT);
        finish(launcher);
        return false;
    }
    ck_assert_int_eq(mapped_files(rank[0], mapped, first), files);
    ck_assert_int_eq(mapped_files(rank[1], mapped, second), files);
    ck_assert_mem_eq(first, second, (size_t)files * sizeof *first);
    for (int i = 0; i < count; i++)
        kill(rank[i], SIGKILL);
    expect_end(launcher, 128 + SIGKILL);
    expect_processes_gone(rank, count, 5);
    return true;
}

START_TEST(ranks_of_a_machine_map_one_cache_that_goes_with_them)
{
    launch_words l = { caches[_i].name, 2, { NULL }, { caches[_i].cache } };

    for (int round = 1; !look_at_caches(&l, caches[_i].mapped, caches[_i].files); round++) {
        ck_assert_int_lt(round, ROUNDS);
        l.name = numbered(caches[_i].name, round);
    }
    expect_goes_on(&l);
}
END_TEST

START_TEST(a_case_that_cannot_be_read_ends_all_ranks_with_one_line)
{
    launch_words l = { "damaged", 4, { NULL }, { "data.source=damaged" } };
    char command[256];

    snprintf(command, sizeof command, "cd %s && cp -r heads damaged && "
             "truncate -s 3000 damaged/imagesTr/phantom_00[123].nii.gz", root);
    ck_assert_int_eq(system(command), 0);
    expect_error(start_launch(&l), PONS_DATA);
    EXPECT_SAID(" failed: case 'phantom_001': cannot read");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("ranks");

    tcase_add_unchecked_fixture(c, setup, remove_root);
    tcase_add_test(c, ranks_count_epochs_as_one_process);
    tcase_add_test(c, ranks_end_with_the_bits_of_one_process);
    tcase_add_test(c, a_file_with_mode_ddp_starts_its_own_ranks);
    tcase_add_test(c, launchers_of_two_nodes_make_one_run);
    tcase_add_loop_test(c, a_killed_rank_is_started_again, 0, sizeof kills / sizeof *kills);
    tcase_add_loop_test(c, a_rank_killed_on_one_of_two_nodes_costs_each_node_one_restart, 0,
                        NODES * NODE_RANKS);
    tcase_add_loop_test(c, a_rank_that_a_slow_disk_keeps_meets_the_others_late, 0,
                        NODES * NODE_RANKS);
    tcase_add_loop_test(c, a_node_whose_ranks_are_all_stopped_joins_the_others_again, 0, NODES);
    tcase_add_test(c, a_pod_that_comes_back_at_once_waits_for_the_others);
    tcase_add_test(c, two_pods_of_one_rank_end_all_with_a_configuration_error);
    tcase_add_test(c, a_rank_killed_at_any_moment_ends_all_and_costs_nothing);
    tcase_add_test(c, a_killed_launcher_leaves_nobody_and_a_run_that_goes_on);
    tcase_add_loop_test(c, signals_stop_all_ranks_at_one_step, 0, sizeof stops / sizeof *stops);
    tcase_add_loop_test(c, a_signal_to_one_rank_before_the_first_step_ends_all, 0,
                        sizeof early / sizeof *early);
    tcase_add_loop_test(c, asked_to_stop_at_any_moment_all_ranks_do, 0, 2);
    tcase_add_test(c, a_second_signal_ends_at_once);
    tcase_add_test(c, a_suspended_run_goes_on_as_if_nothing_had_been);
    tcase_add_loop_test(c, a_stopped_rank_is_found_in_time, 0, 2);
    tcase_add_loop_test(c, ranks_of_a_machine_map_one_cache_that_goes_with_them, 0,
                        sizeof caches / sizeof *caches);
    tcase_add_test(c, a_case_that_cannot_be_read_ends_all_ranks_with_one_line);
    return suite_run();
}
