/*
 * check_meet.c - a process that takes no part: how long it waits for others that do not come, that
 * come and never ask, and that hear it.
 */
#include "dist/group.h"
#include "dist/store.h"
#include "free_port.h"
#include "processes.h"
#include "suite.h"

/* From group.h; and what a busy machine may add. */
#define COME_S 10.0
#define HEAR_S 5.0
#define BUSY_S 4.0

static pons_status refuse(const dist_place *place, pons_error *err)
{
    pons_error failure = PONS_ERROR_INIT;

    pons_fail(&failure, PONS_CONFIG, "'lr' is -1");
    group_refuse(place, &failure);
    return PONS_OK;
}

/* Connects, and says nothing for longer than anybody waits. */
static pons_status come_and_be_silent(const dist_place *place, pons_error *err)
{
    store *s;

    if (store_open(place, COME_S, &s, err) != PONS_OK)
        return err->status;
    sleep((unsigned)(COME_S + HEAR_S + 2 * BUSY_S));
    store_close_within(s, 0);
    return PONS_OK;
}

/* Of three runs, that of the last one is silent. */
enum { RUNS = 3 };
static const int sizes[RUNS] = { 2, 2, 3 };
static int ports[RUNS];

typedef struct seat {
    int run, rank;
    pons_status (*work)(const dist_place *place, pons_error *err);
} seat;

static const seat seats[] = {
    { 0, 0, refuse }, /* serves, and nobody comes                                                 */
    { 1, 1, refuse }, /* looks for a rank 0 that is not there                                     */
    { 2, 0, refuse },
    { 2, 1, come_and_be_silent },
    { 2, 2, come_and_be_silent },
};

static pons_status take_seat(processes *p, int number, void *context, pons_error *err)
{
    const seat *s = &seats[number];
    dist_place place = { .rank = s->rank, .size = sizes[s->run], .local_rank = s->rank,
                         .local_size = sizes[s->run], .master = "127.0.0.1",
                         .port = ports[s->run], .listener = -1, .token = "a-token" };
    double begin = seconds_now();

    s->work(&place, err);
    p->note[number] = seconds_now() - begin;
    return err->status;
}

START_TEST(who_is_refused_waits_ten_seconds_for_others_and_five_for_their_hearing)
{
    processes *p = processes_new(sizeof seats / sizeof *seats);

    for (int i = 0; i < RUNS; i++)
        ports[i] = free_port();
    processes_start(p, take_seat, NULL);
    processes_join(p, 60);
    processes_check(p);
    for (int i = 0; i < RUNS; i++) {
        ck_assert_double_ge(p->note[i], COME_S - 0.5);
        ck_assert_double_le(p->note[i], COME_S + (seats[i].run == 2 ? HEAR_S : 0) + BUSY_S);
    }
    processes_free(p);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("meet");

    tcase_add_test(c, who_is_refused_waits_ten_seconds_for_others_and_five_for_their_hearing);
    return suite_run();
}
