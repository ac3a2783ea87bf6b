/*
 * check_network.c - trainings of two ranks over a network that is slow, cut, restored or reset.
 * They end with the bits of a single process, or in time with one line.
 */
#include <config.h>

#include "support/process/proxy.h"
#include "support/run/ranks.h"
#include "support/soak.h"
#include "support/suite.h"

#include <sched.h>

static proxy *network;

/* A run may finish or be late while this test is not scheduled. The test is then repeated. */
enum { ROUNDS = 5 };

/* All connections of later ranks go through the proxy. */
static void setup(void)
{
    network = proxy_open();
    ck_assert_ptr_nonnull(network);
    ck_assert(proxy_surround(network));
}

static void teardown(void)
{
    proxy_close(network);
}

static void setup_once(void)
{
    make_root();
    make_phantom();
    make_plain_run();
}

START_TEST(an_undisturbed_network_changes_nothing)
{
    launch_words l = { "as-is", 2, { NULL }, { NULL } };

    expect_exit_code(start_launch(&l), 0);
    expect_same_state("plain", "as-is");
    /* The connections of the store and of the collectives went through the proxy. */
    ck_assert_int_ge(proxy_connections(network), 3);
    ck_assert_int_gt(proxy_bytes(network), 1000000);
}
END_TEST

START_TEST(a_slow_network_changes_no_bit)
{
    launch_words l = { "slow", 2, { NULL }, { "train.steps=12" } };
    double delay = 1e-3 * soak_times(20, 200);

    EXPECT(0, NULL, "train", "ranks.ini", "--set", "experiment.name=short", "--set",
           "distribute.mode=single", "--set", "train.steps=12");
    proxy_delay(network, delay);
    double before = seconds_now();
    expect_exit_code(start_launch(&l), 0);
    expect_same_state("short", "slow");
    ck_assert_double_gt(seconds_now() - before, 12 * delay); /* the delay had an effect */
}
END_TEST

START_TEST(a_restored_connection_changes_no_bit)
{
    launch_words l = { "healed", 2, { NULL }, { NULL } };
    pid_t launcher = start_launch(&l);

    ck_assert(wait_steps(launcher, "healed", 10));
    proxy_cut(network, true);
    int steps = steps_of("healed");
    pause_for(1e-3 * soak_times(1500, 10000));
    ck_assert_int_le(steps_of("healed"), steps + 2); /* whose sums were complete before the cut */
    proxy_cut(network, false);
    expect_exit_code(launcher, 0);
    expect_same_state("plain", "healed");
}
END_TEST

/* Time until all processes have ended; negative: the run finished before the fault. */
static double disturb_network(const launch_words *l, bool cut)
{
    pid_t launcher, rank[8];

    proxy_cut(network, false);
    launcher = start_launch(l);
    ck_assert(wait_steps(launcher, l->name, 5));
    int count = find_ranks(launcher, rank, 8);
    double before = seconds_now();
    if (cut)
        proxy_cut(network, true);
    else
        proxy_reset(network);
    int code = process_finish(launcher);
    if (code == 0 && steps_of(l->name) == 120)
        return -1;
    ck_assert_msg(code == PONS_COMMUNICATION, "code %d: %s", code, root_text("said"));
    ck_assert_msg(count_in(root_text("said"), "error: ") == 1, "%s", root_text("said"));
    ck_assert_msg(strstr(root_text("said"), "rank ") != NULL, "%s", root_text("said"));
    expect_processes_gone(rank, count, 0);
    proxy_cut(network, false);
    return seconds_now() - before;
}

static const struct { const char *name; bool cut; double within; } ends[] = {
    { "cut", true, 2 + 2 + 5 },   /* timeout_s, until it is found, until all have ended           */
    { "reset", false, 5 },
};

START_TEST(a_lost_network_ends_the_run_in_time)
{
    launch_words l = { NULL, 2, { NULL }, { "distribute.timeout_s=2" } };
    char name[32];
    double took = -1;

    for (int round = 0; round < ROUNDS && (took < 0 || took > ends[_i].within); round++) {
        snprintf(name, sizeof name, "%s-%d", ends[_i].name, round);
        l.name = name;
        took = disturb_network(&l, ends[_i].cut);
    }
    ck_assert_msg(took >= 0 && took <= ends[_i].within, "%g s", took);
    l.set[0] = NULL;
    expect_exit_code(start_launch(&l), 0);
    expect_same_state("plain", l.name);
}
END_TEST

START_TEST(a_reset_network_restarts_all_ranks)
{
    launch_words l = { "again", 2, { "--restarts=1" }, { NULL } };
    bool restarted = false;
    char name[32];

    for (int round = 0; round < ROUNDS && !restarted; round++) {
        snprintf(name, sizeof name, "again-%d", round);
        l.name = name;
        pid_t launcher = start_launch(&l);
        ck_assert(wait_steps(launcher, l.name, 20));
        proxy_reset(network);
        expect_exit_code(launcher, 0);
        restarted = strstr(root_text("said"), "restart 1 of 1") != NULL;
        expect_same_state("plain", l.name);
    }
    ck_assert(restarted);
}
END_TEST

/* ---- lost and reordered packets, where the kernel supports them ------------------------------ */

/* make check runs the first two. */
static const char *const packets[] = { "loss 1%", "delay 2ms 1ms reorder 25% 50%", "loss 10%",
                                       "delay 200ms 20ms loss 1%" };

/* A network namespace with these packet faults for this thread and the processes that it starts. */
static bool enter_network(const char *netem)
{
    char command[256];

    if (unshare(CLONE_NEWNET) != 0)
        return suite_has("lost_and_reordered_packets_change_no_bit", false, "a network of its own");
    snprintf(command, sizeof command, "{ ip link set lo up && tc qdisc add dev lo root netem %s; } "
             ">/dev/null 2>&1", netem);
    return suite_has("lost_and_reordered_packets_change_no_bit", system(command) == 0, "netem");
}

START_TEST(lost_and_reordered_packets_change_no_bit)
{
    char name[32], plain[64];
    launch_words l = { name, 2, { NULL }, { "train.steps=12" } };

    unsetenv("LD_PRELOAD"); /* the proxy is outside of the namespace */
    if (!enter_network(packets[_i]))
        return;
    snprintf(name, sizeof name, "packets-%d", _i);
    snprintf(plain, sizeof plain, "experiment.name=plain-%d", _i);
    EXPECT(0, NULL, "train", "ranks.ini", "--set", plain, "--set", "distribute.mode=single",
           "--set", "train.steps=12");
    expect_exit_code(start_launch(&l), 0);
    expect_same_state(strchr(plain, '=') + 1, name);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("network");

    tcase_add_unchecked_fixture(c, setup_once, remove_root);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, an_undisturbed_network_changes_nothing);
    tcase_add_test(c, a_slow_network_changes_no_bit);
    tcase_add_test(c, a_restored_connection_changes_no_bit);
    tcase_add_loop_test(c, a_lost_network_ends_the_run_in_time, 0, 2);
    tcase_add_test(c, a_reset_network_restarts_all_ranks);
    tcase_add_loop_test(c, lost_and_reordered_packets_change_no_bit, 0, soak_times(2, 4));
    return suite_run();
}
