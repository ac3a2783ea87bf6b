/*
 * check_slow.c - trainings of two ranks, of which both or one get a tenth of their time: stopped
 * and continued again and again, as on a machine ten times slower. Nobody may take that for a
 * hang, for seconds with every change and for an hour with SOAK; one long stop is taken for it.
 */
#include "ranks.h"
#include "soak.h"
#include "suite.h"

/* While this test is put aside a rank may be stopped for longer than it was meant to: once more. */
enum { ROUNDS = 5, RANKS = 2 };

#define RUNS_S 0.02       /* at a time, where this test wakes up in time                          */
#define SLOWER 10
#define TIMEOUT_S 8.0     /* of the slow runs                                                     */
#define STEPS_WORD "train.steps=96" /* tenths of a second, if nobody slows them down */

static void setup(void)
{
    make_root();
    make_phantom();
    EXPECT(0, NULL, "train", "ranks.ini", "--set", "experiment.name=plain", "--set",
           "distribute.mode=single", "--set", STEPS_WORD);
}

/* What happened to the ranks of a launcher until it ended. */
typedef struct throttle {
    pid_t launcher, rank[RANKS];
    bool chosen[RANKS];
    int stops;
    double longest_s;     /* stop, as it came to be                                               */
} throttle;

/* Until then, or until the launcher has ended. */
static void wait_until(const throttle *t, double end)
{
    for (double left; (left = end - seconds_now()) > 0 && !process_is_gone(t->launcher); )
        pause_for(left < 0.02 ? left : 0.02);
}

static void signal_chosen(const throttle *t, int number)
{
    for (int k = 0; k < RANKS; k++)
        if (t->chosen[k] && t->rank[k] > 0)
            kill(t->rank[k], number);
}

/* Stop them once, and note how long that took. */
static void stop_chosen(throttle *t, double stop_s)
{
    double begin = seconds_now();

    signal_chosen(t, SIGSTOP);
    wait_until(t, begin + stop_s);
    signal_chosen(t, SIGCONT);
    double took = seconds_now() - begin;
    t->longest_s = took > t->longest_s ? took : t->longest_s;
    t->stops++;
}

/*
 * From the first moment in which there are ranks to the last one: however late this test wakes up,
 * they are stopped for nine tenths of the time. The launcher's exit code.
 */
static int slow_down(throttle *t)
{
    while (!process_is_gone(t->launcher)) {
        double begin = seconds_now();

        for (int k = 0; k < RANKS; k++)
            t->rank[k] = t->rank[k] > 0 ? t->rank[k] : find_rank(t->launcher, k);
        wait_until(t, begin + RUNS_S);
        stop_chosen(t, (SLOWER - 1) * (seconds_now() - begin));
    }
    return finish(t->launcher);
}

static const struct { const char *name; bool chosen[RANKS]; } slow[] = {
    { "all", { true, true } }, { "first", { true, false } }, { "second", { false, true } },
};
enum { SLOW = sizeof slow / sizeof *slow };

/* Whether the machine let the stops be as short as they were meant to be. */
static bool run_slowly(int which, int number)
{
    char name[32], timeout[48];
    launch_words l = { name, RANKS, { NULL }, { STEPS_WORD, timeout } };
    throttle t = { .chosen = { slow[which].chosen[0], slow[which].chosen[1] } };

    snprintf(name, sizeof name, "%s-%d", slow[which].name, number);
    snprintf(timeout, sizeof timeout, "distribute.timeout_s=%g", TIMEOUT_S);
    t.launcher = start_launch(&l);
    int code = slow_down(&t);
    if (t.longest_s > TIMEOUT_S / 2)
        return false;
    ck_assert_msg(code == 0, "code %d after %d stops, the longest %.2f s: %s", code, t.stops,
                  t.longest_s, text_of("said"));
    ck_assert_int_gt(t.stops, 1);
    expect_same_state("plain", name);
    return true;
}

START_TEST(a_machine_ten_times_slower_is_no_hang)
{
    double end = seconds_now() + soak_times(0, 3600 / SLOW);
    int runs = 0, aside = 0;

    do {
        bool counts = run_slowly(_i, runs + aside);
        runs += counts;
        aside += !counts;
        ck_assert_int_lt(aside, ROUNDS * (runs + 1));
    } while (runs == 0 || seconds_now() < end);
    printf("%s: %d runs\n", slow[_i].name, runs);
}
END_TEST

/* The control: the same, but for one stop that is longer than the timeout. */
START_TEST(a_stop_longer_than_the_timeout_is_a_hang)
{
    launch_words l = { "hung", RANKS, { NULL }, { "train.steps=1000", "distribute.timeout_s=2" } };
    throttle t = { .launcher = start_launch(&l), .chosen = { false, true } };

    ck_assert(wait_steps(t.launcher, l.name, 3));
    t.rank[1] = find_rank(t.launcher, 1);
    stop_chosen(&t, 1e9);
    int code = finish(t.launcher);
    ck_assert_msg(code == PONS_COMMUNICATION, "code %d: %s", code, text_of("said"));
    ck_assert_msg(strstr(text_of("said"), "rank 1 ") != NULL, "%s", text_of("said"));
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
