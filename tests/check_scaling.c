/*
 * check_scaling.c - the trace of a step's sums over replicas, and the step that is
 * predicted from it for other numbers of devices: by hand on small schedules, and against a
 * network that is played.
 */
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "suite.h"
#include "bench/scaling_model.h"

/* Rounding of a few sums and products of order 10. */
#define EXACT 1e-12

static pons_error error;

static double predicted(const trace_step *s, const scaling_network *n, scaling_way way, int devices)
{
    double seconds = NAN;

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(scaling_predict(s, n, way, devices, &seconds, &error), PONS_OK);
    return seconds;
}

/* Two buckets that are waited for at the end of the backward pass, after which 0.5 s remain. */
static trace_sum two[] = {
    { .size = 1000, .bucket = true, .start = 1, .wait = 3, .start_order = 0, .wait_order = 2 },
    { .size = 2000, .bucket = true, .start = 2, .wait = 3, .start_order = 1, .wait_order = 3 },
};
static const trace_step two_buckets = { 2, 2, two, 3, 3.5, 3.5 };

START_TEST(sums_cost_what_their_formulas_say)
{
    scaling_network n = { 0.1, 1000, false }, collected = { 0.1, 1000, true };

    ck_assert_double_eq_tol(scaling_sum_seconds(&n, SCALING_RING, 8, 500), 1.4 + 0.875, EXACT);
    ck_assert_double_eq_tol(scaling_sum_seconds(&n, SCALING_TREE, 8, 500), 0.6 + 0.875, EXACT);
    ck_assert_double_eq_tol(scaling_sum_seconds(&n, SCALING_TREE, 5, 500), 0.6 + 0.8, EXACT);
    ck_assert_double_eq_tol(scaling_sum_seconds(&collected, SCALING_RING, 8, 500), 0.7 + 3.5,
                            EXACT);
    ck_assert_double_eq_tol(scaling_sum_seconds(&collected, SCALING_TREE, 8, 500), 0.3 + 3.5,
                            EXACT);
    for (int way = 0; way < SCALING_WAY_COUNT; way++)
        ck_assert_double_eq(scaling_sum_seconds(&n, (scaling_way)way, 1, 500), 0);
}
END_TEST

/*
 * By hand, ring: with 2 devices the sums take 1.2 and 2.2 s: 1 .. 2.2, 2.2 .. 4.4, so the step
 * waits 1.4 s. With 8 they take 3.15 and 4.9: 1 .. 4.15 .. 9.05, 6.05 s. Tree with 8: 2.35 and 4.1.
 */
START_TEST(buckets_run_one_after_another_behind_the_backward_pass)
{
    scaling_network n = { 0.1, 1000, false }, fast = { 0.01, 1e6, false };

    ck_assert_double_eq_tol(predicted(&two_buckets, &n, SCALING_RING, 1), 3.5, EXACT);
    ck_assert_double_eq_tol(predicted(&two_buckets, &n, SCALING_RING, 2), 4.9, EXACT);
    ck_assert_double_eq_tol(predicted(&two_buckets, &n, SCALING_RING, 8), 9.55, EXACT);
    ck_assert_double_eq_tol(predicted(&two_buckets, &n, SCALING_TREE, 8), 7.95, EXACT);
    ck_assert_double_eq_tol(predicted(&two_buckets, &fast, SCALING_RING, 8), 3.5, EXACT);
}
END_TEST

/*
 * A sum that is waited for where it begins makes everything behind it later: 1 s of latency twice
 * at 0.5, then the bucket that would begin at 1 begins at 2.5 and takes 2 s: done at 4.5, needed at
 * 2 + 2.
 */
START_TEST(a_sum_inside_of_the_passes_delays_what_follows)
{
    trace_sum sum[] = {
        { .size = 0, .start = 0.5, .wait = 0.5, .start_order = 0, .wait_order = 1 },
        { .size = 0, .bucket = true, .start = 1, .wait = 2, .start_order = 2, .wait_order = 3 },
    };
    trace_step s = { 2, 2, sum, 2, 2.25, 2.25 };
    scaling_network n = { 1, 1, false };

    ck_assert_double_eq_tol(predicted(&s, &n, SCALING_RING, 2), 2.25 + 2 + 1, EXACT);
}
END_TEST

/* A sum inside of the backward pass waits its turn behind a bucket that was begun before it. */
START_TEST(sums_keep_the_order_of_their_starts)
{
    trace_sum sum[] = {
        { .size = 4, .bucket = true, .start = 1, .wait = 3, .start_order = 0, .wait_order = 3 },
        { .size = 0, .start = 2, .wait = 2, .start_order = 1, .wait_order = 2 },
    };
    trace_step s = { 2, 2, sum, 3, 3, 3 };
    scaling_network n = { 0.5, 1, false };

    /* 1 .. 6, then 6 .. 7: the pass stands from 2 to 7 */
    ck_assert_double_eq_tol(predicted(&s, &n, SCALING_RING, 2), 8, EXACT);
}
END_TEST

START_TEST(hidden_is_what_lies_before_the_end_of_the_backward_pass)
{
    trace_sum sum[] = {
        { .bucket = true, .started = 1, .ended = 2 },
        { .bucket = true, .started = 2, .ended = 6 },
        { .bucket = false, .started = 0, .ended = 3 },
        { .bucket = true, .started = 4, .ended = 5 },
        { .bucket = true, .started = 4.5, .ended = 4.5 },
    };
    trace_step s = { 5, 5, sum, 4, 6, 6 };
    double seconds = 0, hidden = 0;

    trace_add_hidden(&s, &seconds, &hidden);
    ck_assert_double_eq_tol(seconds, 1 + 4 + 1, EXACT);
    ck_assert_double_eq_tol(hidden, 1 + 2 + 0, EXACT);
}
END_TEST

START_TEST(a_network_is_found_by_what_its_sums_took)
{
    static const int64_t size[] = { 8, 4000000, 1000000, 13056 };
    double seconds[4];

    for (int collected = 0; collected < 2; collected++) {
        scaling_network n = { 3e-5, 2e9, collected }, found = { 0, 0, collected };
        for (int i = 0; i < 4; i++)
            seconds[i] = scaling_sum_seconds(&n, SCALING_RING, 3, size[i]);
        ck_assert(scaling_fit(4, size, seconds, 3, &found));
        ck_assert_double_eq_tol(found.latency / n.latency, 1, 1e-9);
        ck_assert_double_eq_tol(found.bandwidth / n.bandwidth, 1, 1e-9);
        for (int i = 0; i < 4; i++)
            seconds[i] = 1 - seconds[i];
        ck_assert(!scaling_fit(4, size, seconds, 3, &found));
        ck_assert(!scaling_fit(1, size, seconds, 3, &found));
        ck_assert(!scaling_fit(0, size, seconds, 3, &found));
        ck_assert_double_eq_tol(found.latency / n.latency, 1, 1e-9);
    }
}
END_TEST

/* ---- a network that is played ---------------------------------------------------------------- */

/* A link to one other device that is always on time. */
typedef struct link_played {
    scaling_network network;
    double free_at, ended;
    double done[8];
    int count;
} link_played;

static void sleep_until(double when)
{
    double left = when - seconds_now();
    struct timespec t = { 0, 0 };

    if (left <= 0)
        return;
    t.tv_sec = (time_t)left;
    t.tv_nsec = (long)(1e9 * (left - floor(left)));
    nanosleep(&t, NULL);
}

static pons_status start(void *context, void *buffer, int64_t count, pons_type type,
                         void **pending, pons_error *err)
{
    link_played *l = context;

    l->free_at = fmax(l->free_at, seconds_now())
               + scaling_sum_seconds(&l->network, SCALING_RING, 2, 4 * count);
    l->done[l->count] = l->free_at;
    *pending = &l->done[l->count++];
    return PONS_OK;
}

static pons_status finish(void *context, void *pending, pons_error *err)
{
    ((link_played *)context)->ended = *(double *)pending;
    sleep_until(*(double *)pending);
    return PONS_OK;
}

static double ended(void *context)
{
    return ((link_played *)context)->ended;
}

/*
 * 20 ms, a joined statistic, 20 ms, a bucket, 20 ms, a bucket, the end of the backward pass, 10 ms.
 * At 1 MB/s buckets of 40 and 20 kB take as many milliseconds and 2 of latency.
 */
static void play(trace *t, int at)
{
    const program_collective *c = trace_collective(t);
    void *pending[3];

    trace_begin(t, at);
    sleep_until(seconds_now() + 0.02);
    c->start(c->context, NULL, 2, PONS_F32, &pending[0], &error);
    c->wait(c->context, pending[0], &error);
    sleep_until(seconds_now() + 0.02);
    c->start(c->context, NULL, 10000, PONS_F32, &pending[1], &error);
    sleep_until(seconds_now() + 0.02);
    c->start(c->context, NULL, 5000, PONS_F32, &pending[2], &error);
    trace_backward_done(t);
    c->wait(c->context, pending[1], &error);
    c->wait(c->context, pending[2], &error);
    sleep_until(seconds_now() + 0.01);
    trace_end(t);
}

/*
 * A loaded machine wakes a sleeper late, which makes a step longer and never shorter: what is
 * predicted is a bound, and one step of several comes near it. Who computes late waits less for
 * sums, which go on meanwhile: that there is something to wait for shows in one step of several.
 */
START_TEST(a_traced_step_is_predicted_within_a_tenth)
{
    enum { TRIES = 30 };
    double nearest = 0, waits = 0, shown = 0;
    link_played link = { .network = { 1e-3, 1e6, false } };
    program_collective joined = { 2, 1, &link, start, finish, ended, NULL };
    trace *t;

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(trace_new(&joined, TRIES, &t, &error), PONS_OK);
    ck_assert_int_eq(trace_collective(t)->count, 2);
    ck_assert_int_eq(trace_collective(t)->rank, 1);
    for (int at = 0; at < TRIES && (nearest < 0.9 || waits < 0.03 || shown == 0); at++) {
        const trace_step *s = trace_at(t, at);
        double seconds = 0, hidden = 0, share;

        link.count = 0;
        play(t, at);
        ck_assert_int_eq(s->count, 3);
        ck_assert(!s->sum[0].bucket && s->sum[1].bucket && s->sum[2].bucket);
        ck_assert_int_eq(s->sum[1].size, 40000);
        ck_assert_double_ge(s->compute, 0.07);
        waits = fmax(waits, s->seconds - s->compute);
        share = predicted(s, &link.network, SCALING_RING, 2) / s->seconds;
        ck_assert_double_le(share, 1.001);
        nearest = fmax(nearest, share);
        trace_add_hidden(s, &seconds, &hidden);
        ck_assert_double_gt(hidden, 0);
        ck_assert_double_le(hidden, seconds);
        shown = fmax(shown, seconds - hidden);
    }
    ck_assert_double_ge(nearest, 0.9);
    ck_assert_double_ge(waits, 0.03);
    ck_assert_double_gt(shown, 0);
    trace_free(t);
}
END_TEST

/* Who is put aside between two looks at the clock has waited, but not each time. */
START_TEST(a_replica_alone_has_sums_that_take_no_time)
{
    enum { TRIES = 5 };
    double waited = 1;
    trace *t;

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(trace_new(NULL, TRIES, &t, &error), PONS_OK);
    ck_assert_int_eq(trace_collective(t)->count, 1);
    for (int at = 0; at < TRIES && waited > 1e-3; at++) {
        const trace_step *s = trace_at(t, at);

        play(t, at);
        ck_assert_int_eq(s->count, 3);
        ck_assert_double_eq(s->sum[1].ended, s->sum[1].started);
        ck_assert_double_ge(s->sum[1].start, s->sum[0].wait + 0.02);
        waited = s->seconds - s->compute;
    }
    ck_assert_double_le(waited, 1e-3);
    trace_free(t);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("scaling");

    tcase_add_test(c, sums_cost_what_their_formulas_say);
    tcase_add_test(c, buckets_run_one_after_another_behind_the_backward_pass);
    tcase_add_test(c, a_sum_inside_of_the_passes_delays_what_follows);
    tcase_add_test(c, sums_keep_the_order_of_their_starts);
    tcase_add_test(c, hidden_is_what_lies_before_the_end_of_the_backward_pass);
    tcase_add_test(c, a_network_is_found_by_what_its_sums_took);
    tcase_add_test(c, a_traced_step_is_predicted_within_a_tenth);
    tcase_add_test(c, a_replica_alone_has_sums_that_take_no_time);
    return suite_run();
}
