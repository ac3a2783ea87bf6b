/*
 * check_slow.c - trainings of two ranks, of which one or both run for a tenth of the time. They are
 * stopped and continued repeatedly, as on a machine ten times slower. No rank may take that for a
 * hang, for seconds in make check and for an hour with SOAK. A single long stop is a hang.
 */
#include "support/run/ranks.h"
#include "support/soak.h"
#include "support/suite.h"

/*
 * A rank may be stopped for longer than intended while this test is not scheduled. The test is then
 * repeated.
 */
enum { ROUNDS = 5, RANKS = 2 };

#define RUNS_S 0.02       /* at a time, if this test is scheduled in time                         */
#define SLOWER 10
#define TIMEOUT_S 8.0     /* of the slow runs                                                     */
#define STEPS_WORD "train.steps=96" /* a few tenths of a second at full speed */

static void setup(void)
{
    make_root();
    make_phantom();
    EXPECT(0, NULL, "train", "ranks.ini", "--set", "experiment.name=plain", "--set",
           "distribute.mode=single", "--set", STEPS_WORD);
}

/* The stops of a launcher's ranks until it ended. */
typedef struct throttle {
    pid_t launcher, rank[RANKS];
    bool chosen[RANKS];
    int stops;
    double longest_s;     /* longest stop as measured                                             */
} throttle;

/* Wait until 'end', or until the launcher has ended. */
static void wait_until_time(const throttle *t, double end)
{
    for (double left; (left = end - seconds_now()) > 0 && !process_is_gone(t->launcher); )
        pause_for(left < 0.02 ? left : 0.02);
}

static void signal_chosen_ranks(const throttle *t, int number)
{
    for (int k = 0; k < RANKS; k++)
        if (t->chosen[k] && t->rank[k] > 0)
            kill(t->rank[k], number);
}

/* Stop the chosen ranks once, and measure the time. */
static void stop_chosen_ranks(throttle *t, double stop_s)
{
    double begin = seconds_now();

    signal_chosen_ranks(t, SIGSTOP);
    wait_until_time(t, begin + stop_s);
    signal_chosen_ranks(t, SIGCONT);
    double took = seconds_now() - begin;
    t->longest_s = took > t->longest_s ? took : t->longest_s;
    t->stops++;
}

/*
 * Stop the chosen ranks for nine tenths of the time, from their start to their end, however late
 * this test is scheduled. The result is the launcher's exit code.
 */
static int slow_ranks_down(throttle *t)
{
    while (!process_is_gone(t->launcher)) {
        double begin = seconds_now();

        for (int k = 0; k < RANKS; k++)
            t->rank[k] = t->rank[k] > 0 ? t->rank[k] : find_rank(t->launcher, k);
        wait_until_time(t, begin + RUNS_S);
        stop_chosen_ranks(t, (SLOWER - 1) * (seconds_now() - begin));
    }
    return process_finish(t->launcher);
}

static const struct { const char *name; bool chosen[RANKS]; } slow[] = {
    { "all", { true, true } }, { "first", { true, false } }, { "second", { false, true } },
};
enum { SLOW = sizeof slow / sizeof *slow };

/* Whether the stops were as short as intended on this machine. */
static bool run_slow_ranks(int which, int number)
{
    char name[32], timeout[48];
    launch_words l = { name, RANKS, { NULL }, { STEPS_WORD, timeout } };
    throttle t = { .chosen = { slow[which].chosen[0], slow[which].chosen[1] } };

    snprintf(name, sizeof name, "%s-%d", slow[which].name, number);
    snprintf(timeout, sizeof timeout, "distribute.timeout_s=%g", TIMEOUT_S);
    t.launcher = start_launch(&l);
    int code = slow_ranks_down(&t);
    if (t.longest_s > TIMEOUT_S / 2)
        return false;
    ck_assert_msg(code == 0, "code %d after %d stops, the longest %.2f s: %s", code, t.stops,
                  t.longest_s, root_text("said"));
    ck_assert_int_gt(t.stops, 1);
    expect_same_state("plain", name);
    return true;
}

START_TEST(a_machine_ten_times_slower_is_no_hang)
{
    double end = seconds_now() + soak_times(0, 3600 / SLOW);
    int runs = 0, aside = 0;

    do {
        bool counts = run_slow_ranks(_i, runs + aside);
        runs += counts;
        aside += !counts;
        ck_assert_int_lt(aside, ROUNDS * (runs + 1));
    } while (runs == 0 || seconds_now() < end);
    printf("%s: %d runs\n", slow[_i].name, runs);
}
END_TEST

/* The control: the same run with a single stop that is longer than the timeout. */
START_TEST(a_stop_longer_than_the_timeout_is_a_hang)
{
    launch_words l = { "hung", RANKS, { NULL }, { "train.steps=1000", "distribute.timeout_s=2" } };
    throttle t = { .launcher = start_launch(&l), .chosen = { false, true } };

    ck_assert(wait_steps(t.launcher, l.name, 3));
    t.rank[1] = find_rank(t.launcher, 1);
    stop_chosen_ranks(&t, 1e9);
    int code = process_finish(t.launcher);
    ck_assert_msg(code == PONS_COMMUNICATION, "code %d: %s", code, root_text("said"));
    ck_assert_msg(strstr(root_text("said"), "rank 1 ") != NULL, "%s", root_text("said"));
}
END_TEST

int main(void)
{
    TCase *c = suite_new("slow");

    tcase_add_unchecked_fixture(c, setup, remove_root);
    tcase_add_loop_test(c, a_machine_ten_times_slower_is_no_hang, 0, SLOW);
    tcase_add_test(c, a_stop_longer_than_the_timeout_is_a_hang);
    return suite_run();
}
