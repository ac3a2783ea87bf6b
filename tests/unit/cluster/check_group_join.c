/*
 * check_group_join.c - a process that takes no part: its wait for others that do not come, and for
 * those that come and never ask.
 */
#include "cluster/group/group.h"
#include "cluster/store/store.h"
#include "support/pause.h"
#include "support/process/free_port.h"
#include "support/process/shared_table.h"
#include "support/suite.h"

/* The first two are limits of group.h, the last one is the delay of a busy machine. */
#define COME_S 10.0
#define HEAR_S 5.0
#define BUSY_S 4.0

/*
 * Three runs, in each of which one process takes no part. The table below has its place in the
 * run.
 */
enum { RUNS = 3 };
static const struct { int size; double hear_s; } runs[RUNS] = { { 2, 0 }, { 2, 0 }, { 3, HEAR_S } };
static int ports[RUNS];

static void refuse(const processes *p, const rank_info *place, pons_error *err)
{
    pons_error failure = PONS_ERROR_INIT;

    pons_fail(&failure, PONS_CONFIG, "'lr' is -1");
    group_refuse(place, &failure);
}

/* Connect, and send nothing while any process waits. */
static void come_and_be_silent(const processes *p, const rank_info *place, pons_error *err)
{
    store *s;

    if (store_open(place, COME_S, &s, err) != PONS_OK)
        return;
    while (p->ended[RUNS - 1] == 0)
        pause_for(0.02);
    store_close(s, 0);
}

static const struct {
    int run, rank;
    void (*work)(const processes *p, const rank_info *place, pons_error *err);
} seats[] = {
    { 0, 0, refuse }, /* serves, and no other rank comes                                          */
    { 1, 1, refuse }, /* looks for a rank 0 that does not exist                                   */
    { 2, 0, refuse }, /* serves two ranks that do not ask                                         */
    { 2, 1, come_and_be_silent },
    { 2, 2, come_and_be_silent },
};

static pons_status take_seat(processes *p, int number, void *context, pons_error *err)
{
    const int run = seats[number].run, rank = seats[number].rank, size = runs[run].size;
    rank_info place = { .rank = rank, .size = size, .local_rank = rank, .local_size = size,
                        .master = "127.0.0.1", .port = ports[run], .listener = -1,
                        .token = "a-token" };
    double begin = seconds_now();

    seats[number].work(p, &place, err);
    p->note[number] = seconds_now() - begin;
    return err->status;
}

/* No process has waited longer than its limit. */
static bool run_all_seats(void)
{
    processes *p = processes_new(sizeof seats / sizeof *seats);
    bool in_time = true;

    for (int i = 0; i < RUNS; i++)
        ports[i] = free_port();
    processes_start(p, take_seat, NULL);
    processes_join(p, 60);
    processes_check(p);
    for (int i = 0; i < RUNS; i++) {
        ck_assert_double_ge(p->note[i], COME_S + runs[i].hear_s - 0.5);
        if (p->note[i] > COME_S + runs[i].hear_s + BUSY_S)
            printf("run %d took %g s\n", i, p->note[i]);
        in_time = in_time && p->note[i] <= COME_S + runs[i].hear_s + BUSY_S;
    }
    processes_free(p);
    return in_time;
}

/* A machine may be paused in one round, which delays that round only. */
START_TEST(a_failed_rank_waits_a_bounded_time_for_the_others)
{
    int round = 0;

    while (!run_all_seats())
        ck_assert_int_lt(++round, 3);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("meet");

    tcase_add_test(c, a_failed_rank_waits_a_bounded_time_for_the_others);
    return suite_run();
}
