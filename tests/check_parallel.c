/*
 * check_parallel.c - a loop does every index once, whatever it may borrow; it borrows no more than
 * there is, and gives it back.
 */
#include "pause.h"
#include "suite.h"

#include "base/clock.h"
#include "base/thread/parallel.h"
#include "base/thread/thread.h"

#include <sched.h>
#include <stdatomic.h>

enum { INDICES = 1000 };

#define PATIENCE_S patient(60)

typedef struct tally {
    _Atomic int done[INDICES];
    _Atomic int now, most;    /* bodies that run at the same time                                 */
    _Atomic int arrived;
    int64_t piece;
    int wait_for;             /* bodies that must run at the same time before any ends            */
    double seconds;           /* that each takes at least                                         */
    _Atomic bool wrong;
} tally;

static void enter(tally *t)
{
    int now = ++t->now, most = t->most;

    while (now > most && !atomic_compare_exchange_weak(&t->most, &most, now))
        continue;
}

static void count_indices(void *context, int64_t first, int64_t end)
{
    tally *t = context;
    double begin = seconds_now();

    enter(t);
    if (first % t->piece != 0 || end - first > t->piece || end <= first)
        t->wrong = true;
    for (int64_t n = first; n < end; n++)
        t->done[n]++;
    t->arrived++;
    while (t->arrived < t->wait_for && seconds_now() - begin < PATIENCE_S)
        continue;
    while (seconds_now() - begin < t->seconds)
        sched_yield();
    t->now--;
}

static void run(tally *t, int64_t count, int spare_threads)
{
    parallel_spare spare = { spare_threads };

    parallel_borrow(&spare);
    parallel_run(count, t->piece, count_indices, t);
    parallel_borrow(NULL);
    ck_assert_int_eq(spare.threads, spare_threads);
    ck_assert(!t->wrong);
    for (int64_t n = 0; n < INDICES; n++)
        ck_assert_int_eq(t->done[n], n < count);
}

START_TEST(every_index_is_done_once)
{
    static const int64_t counts[] = { 0, 1, 2, 7, 63, 64, 65, INDICES };

    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int64_t piece = 1; piece < 130; piece += 9)
            for (int spare = 0; spare < 7; spare += 2) {
                tally t = { .piece = piece };

                run(&t, counts[c], spare);
                ck_assert_int_le(t.most, spare + 1);
            }
}
END_TEST

START_TEST(as_many_work_at_a_time_as_are_spare)
{
    for (int spare = 0; spare < 7; spare++) {
        tally t = { .piece = 100, .wait_for = spare + 1 };

        run(&t, INDICES, spare);
        ck_assert_int_eq(t.most, spare + 1);
    }
}
END_TEST

START_TEST(no_more_work_at_a_time_than_are_spare)
{
    for (int spare = 0; spare < 4; spare++) {
        tally t = { .piece = 100, .seconds = 0.005 };

        run(&t, INDICES, spare);
        ck_assert_int_le(t.most, spare + 1);
    }
}
END_TEST

START_TEST(without_a_lender_there_are_the_processors)
{
    tally t = { .piece = 1 };

    parallel_run(INDICES, 1, count_indices, &t);
    ck_assert_int_le(t.most, thread_processors());
}
END_TEST

/* ---- loops in a loop ------------------------------------------------------------------------- */

typedef struct outer {
    tally *inner;             /* of each index                                                    */
    tally *all;               /* of all of them together                                          */
} outer;

static void count_within(void *context, int64_t first, int64_t end)
{
    tally *t = ((outer *)context)->inner;
    tally *all = ((outer *)context)->all;

    enter(all);
    count_indices(t, first, end);
    all->now--;
}

static void run_within(void *context, int64_t first, int64_t end)
{
    for (int64_t n = first; n < end; n++) {
        outer *o = (outer *)context + n;

        parallel_run(INDICES, o->inner->piece, count_within, o);
    }
}

START_TEST(loops_in_a_loop_take_from_the_same_threads)
{
    for (int spare_threads = 0; spare_threads < 6; spare_threads++) {
        static tally inner[4];
        tally all = { .piece = 50 };
        outer o[4];
        parallel_spare spare = { spare_threads };

        for (int n = 0; n < 4; n++) {
            inner[n] = (tally){ .piece = 50, .seconds = 0.001 };
            o[n] = (outer){ &inner[n], &all };
        }
        parallel_borrow(&spare);
        parallel_run(4, 1, run_within, o);
        parallel_borrow(NULL);
        ck_assert_int_eq(spare.threads, spare_threads);
        ck_assert_int_le(all.most, spare_threads + 1);
        for (int n = 0; n < 4; n++)
            for (int i = 0; i < INDICES; i++)
                ck_assert_int_eq(inner[n].done[i], 1);
    }
}
END_TEST

typedef struct helped {
    parallel_spare spare;
    tally inner;
} helped;

/* The second piece ends at once; its thread must help the first, which waits until it can. */
static void wait_for_help(void *context, int64_t first, int64_t end)
{
    helped *h = context;
    double begin = seconds_now();

    if (first > 0)
        return;
    while (h->spare.threads == 0 && seconds_now() - begin < PATIENCE_S)
        continue;
    parallel_run(INDICES, h->inner.piece, count_indices, &h->inner);
}

START_TEST(who_finds_no_piece_any_more_is_spare)
{
    helped h = { .spare = { 1 }, .inner = { .piece = 500, .wait_for = 2 } };

    parallel_borrow(&h.spare);
    parallel_run(2, 1, wait_for_help, &h);
    parallel_borrow(NULL);
    ck_assert_int_eq(h.inner.most, 2);
    ck_assert_int_eq(h.spare.threads, 1);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("parallel");

    tcase_add_test(c, every_index_is_done_once);
    tcase_add_test(c, as_many_work_at_a_time_as_are_spare);
    tcase_add_test(c, no_more_work_at_a_time_than_are_spare);
    tcase_add_test(c, without_a_lender_there_are_the_processors);
    tcase_add_test(c, loops_in_a_loop_take_from_the_same_threads);
    tcase_add_test(c, who_finds_no_piece_any_more_is_spare);
    return suite_run();
}
