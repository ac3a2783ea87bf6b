/*
 * check_meet.c - a process that takes no part: how long it waits for others that do not come, and
 * for those that come and never ask.
 */
#include "cluster/group/group.h"
#include "cluster/store/store.h"
#include "free_port.h"
#include "pause.h"
#include "processes.h"
#include "suite.h"

/* From group.h; and what a busy machine may add. */
#define COME_S 10.0
#define HEAR_S 5.0
#define BUSY_S 4.0

/*
 * Three runs; of each one process takes no part. It stands at the run's place in the table below.
 */
enum { RUNS = 3 };
static const struct { int size; double hear_s; } runs[RUNS] = { { 2, 0 }, { 2, 0 }, { 3, HEAR_S } };
static int ports[RUNS];

static void refuse(const processes *p, const dist_place *place, pons_error *err)
{
    pons_error failure = PONS_ERROR_INIT;

    pons_fail(&failure, PONS_CONFIG, "'lr' is -1");
    group_refuse(place, &failure);
}

/* Connects, and says nothing for as long as anybody waits. */
static void come_and_be_silent(const processes *p, const dist_place *place, pons_error *err)
{
    store *s;

    if (store_open(place, COME_S, &s, err) != PONS_OK)
        return;
    while (p->ended[RUNS - 1] == 0)
        pause_for(0.02);
    store_close_within(s, 0);
}

static const struct {
    int run, rank;
    void (*work)(const processes *p, const dist_place *place, pons_error *err);
} seats[] = {
    { 0, 0, refuse }, /* serves, and nobody comes                                                 */
    { 1, 1, refuse }, /* looks for a rank 0 that is not there                                     */
    { 2, 0, refuse }, /* serves two that do not ask                                               */
    { 2, 1, come_and_be_silent },
    { 2, 2, come_and_be_silent },
};

static pons_status take_seat(processes *p, int number, void *context, pons_error *err)
{
    const int run = seats[number].run, rank = seats[number].rank, size = runs[run].size;
    dist_place place = { .rank = rank, .size = size, .local_rank = rank, .local_size = size,
                         .master = "127.0.0.1", .port = ports[run], .listener = -1,
                         .token = "a-token" };
    double begin = seconds_now();

    seats[number].work(p, &place, err);
    p->note[number] = seconds_now() - begin;
    return err->status;
}

/* Whether none has waited longer than it may. */
static bool meet(void)
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

/* A machine may be paused once, and only then it takes longer. */
START_TEST(who_is_refused_waits_ten_seconds_for_others_and_five_for_their_hearing)
{
    int round = 0;

    while (!meet())
        ck_assert_int_lt(++round, 3);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("meet");

    tcase_add_test(c, who_is_refused_waits_ten_seconds_for_others_and_five_for_their_hearing);
    return suite_run();
}
