/*
 * check_parallel.c - a loop runs every index once, however many threads it borrows. It borrows at
 * most the free threads and returns them.
 */
#include "support/pause.h"
#include "support/suite.h"

#include "base/clock.h"
#include "base/thread/parallel.h"
#include "base/thread/thread.h"

#include <sched.h>
#include <stdatomic.h>

enum { INDICES = 1000 };

#define PATIENCE_S deadline_scaled(60)

typedef struct tally {
    _Atomic int done[INDICES];
    _Atomic int now, most;    /* bodies that run at the same time                                 */
    _Atomic int arrived;
    int64_t piece;
    int wait_for;             /* bodies that must run at the same time before any ends            */
    double seconds;           /* least duration of a body                                         */
    _Atomic bool wrong;
} tally;

static void enter_body(tally *t)
{
    int now = ++t->now, most = t->most;

    while (now > most && !atomic_compare_exchange_weak(&t->most, &most, now))
        continue;
}

static void count_indices(void *context, int64_t first, int64_t end)
{
    tally *t = context;
    double begin = seconds_now();

    enter_body(t);
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

static void run_loop(tally *t, int64_t count, int spare_threads)
{
    thread_budget spare = { spare_threads };

    thread_budget_set(&spare);
    parallel_run(count, t->piece, count_indices, t);
    thread_budget_set(NULL);
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

                run_loop(&t, counts[c], spare);
                ck_assert_int_le(t.most, spare + 1);
            }
}
END_TEST

START_TEST(a_loop_uses_all_free_threads)
{
    for (int spare = 0; spare < 7; spare++) {
        tally t = { .piece = 100, .wait_for = spare + 1 };

        run_loop(&t, INDICES, spare);
        ck_assert_int_eq(t.most, spare + 1);
    }
}
END_TEST

START_TEST(a_loop_uses_only_free_threads)
{
    for (int spare = 0; spare < 4; spare++) {
        tally t = { .piece = 100, .seconds = 0.005 };

        run_loop(&t, INDICES, spare);
        ck_assert_int_le(t.most, spare + 1);
    }
}
END_TEST

START_TEST(without_a_thread_budget_a_loop_uses_the_processors)
{
    tally t = { .piece = 1 };

    parallel_run(INDICES, 1, count_indices, &t);
    ck_assert_int_le(t.most, thread_processors());
}
END_TEST

/* ---- nested loops ---------------------------------------------------------------------------- */

typedef struct outer {
    tally *inner;             /* one for each index of the outer loop                             */
    tally *all;               /* all loops together                                               */
} outer;

static void count_inner_loop(void *context, int64_t first, int64_t end)
{
    tally *t = ((outer *)context)->inner;
    tally *all = ((outer *)context)->all;

    enter_body(all);
    count_indices(t, first, end);
    all->now--;
}

static void run_inner_loop(void *context, int64_t first, int64_t end)
{
    for (int64_t n = first; n < end; n++) {
        outer *o = (outer *)context + n;

        parallel_run(INDICES, o->inner->piece, count_inner_loop, o);
    }
}

START_TEST(nested_loops_share_one_thread_budget)
{
    for (int spare_threads = 0; spare_threads < 6; spare_threads++) {
        static tally inner[4];
        tally all = { .piece = 50 };
        outer o[4];
        thread_budget spare = { spare_threads };

        for (int n = 0; n < 4; n++) {
            inner[n] = (tally){ .piece = 50, .seconds = 0.001 };
            o[n] = (outer){ &inner[n], &all };
        }
        thread_budget_set(&spare);
        parallel_run(4, 1, run_inner_loop, o);
        thread_budget_set(NULL);
        ck_assert_int_eq(spare.threads, spare_threads);
        ck_assert_int_le(all.most, spare_threads + 1);
        for (int n = 0; n < 4; n++)
            for (int i = 0; i < INDICES; i++)
                ck_assert_int_eq(inner[n].done[i], 1);
    }
}
END_TEST

typedef struct helped {
    thread_budget spare;
    tally inner;
} helped;

/* The second piece ends at once. Its thread must help the first piece, which waits for that. */
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

START_TEST(a_thread_without_pieces_becomes_free)
{
    helped h = { .spare = { 1 }, .inner = { .piece = 500, .wait_for = 2 } };

    thread_budget_set(&h.spare);
    parallel_run(2, 1, wait_for_help, &h);
    thread_budget_set(NULL);
    ck_assert_int_eq(h.inner.most, 2);
    ck_assert_int_eq(h.spare.threads, 1);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("parallel");

    tcase_add_test(c, every_index_is_done_once);
    tcase_add_test(c, a_loop_uses_all_free_threads);
    tcase_add_test(c, a_loop_uses_only_free_threads);
    tcase_add_test(c, without_a_thread_budget_a_loop_uses_the_processors);
    tcase_add_test(c, nested_loops_share_one_thread_budget);
    tcase_add_test(c, a_thread_without_pieces_becomes_free);
    return suite_run();
}
