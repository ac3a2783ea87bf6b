/*
 * check_local_comm.c - sums over the replicas of a process follow R2's pairwise order, whichever
 * replica arrives first.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "device/local_comm.h"
#include "device/replica_threads.h"
#include "support/suite.h"

enum { MOST = 7, SUMS = 40 };

/* Buffers of all replicas and their expected results. */
typedef struct scene {
    int replicas;
    local_comm *comm;
    replica_threads *replica_threads;
    int64_t count[SUMS];
    float *buffer[MOST][SUMS], *expected[SUMS];
    int fails;                 /* replica that fails in the middle, -1: none                      */
    bool uneven;               /* replica 1 has another count                                     */
} scene;

static void failed(void *context, int number)
{
    local_comm_abort(((scene *)context)->comm, number);
}

/* The pairwise sum of R2, written as the rule states it. */
static float replica_pairwise_sum(const float *a, int n)
{
    int p = 1;

    if (n == 1)
        return a[0];
    while (2 * p < n)
        p *= 2;
    return replica_pairwise_sum(a, p) + replica_pairwise_sum(a + p, n - p);
}

static float replica_element(int replica, int sum, int64_t i)
{
    uint32_t u[4];

    random_voxels((uint64_t)(replica * SUMS + sum), (uint64_t)i, u);
    return ldexpf(random_uniform(u[0]) - 0.5f, (int)(u[1] % 24));
}

static void scene_open(scene *s, int replicas)
{
    pons_error err = PONS_ERROR_INIT;
    float part[MOST];

    *s = (scene){ .replicas = replicas, .fails = -1 };
    ck_assert_int_eq(local_comm_new(replicas, &s->comm, &err), PONS_OK);
    ck_assert_int_eq(replica_threads_open(replicas, failed, s, &s->replica_threads, &err), PONS_OK);
    for (int k = 0; k < SUMS; k++) {
        s->count[k] = k % 5 == 0 ? 1 : k * k * 7 + k;
        s->expected[k] = malloc(sizeof(float) * (size_t)s->count[k]);
        for (int r = 0; r < replicas; r++)
            s->buffer[r][k] = malloc(sizeof(float) * (size_t)s->count[k]);
        for (int64_t i = 0; i < s->count[k]; i++) {
            for (int r = 0; r < replicas; r++)
                part[r] = s->buffer[r][k][i] = replica_element(r, k, i);
            s->expected[k][i] = replica_pairwise_sum(part, replicas);
        }
    }
}

static void scene_close(scene *s)
{
    replica_threads_close(s->replica_threads);
    local_comm_free(s->comm);
    for (int k = 0; k < SUMS; k++) {
        free(s->expected[k]);
        for (int r = 0; r < s->replicas; r++)
            free(s->buffer[r][k]);
    }
}

/* Up to 25 sums have started before the first wait; the replicas' paces differ. */
static pons_status take_part(void *context, int number, pons_error *err)
{
    scene *s = context;
    const program_collective *c = local_comm_collective(s->comm, number);
    void *pending[SUMS];
    pons_status status = PONS_OK;
    int waited = 0;

    for (int k = 0; k < SUMS && status == PONS_OK; k++) {
        if (number == s->fails && k == SUMS / 2)
            return pons_fail(err, PONS_DATA, "replica %d found no case", number);
        if ((k + number) % 11 == 0)
            usleep(500);
        status = c->start(c->context, s->buffer[number][k],
                          s->count[k] - (s->uneven && number == 1 && k == 3), PONS_F32,
                          &pending[k], err);
        while (status == PONS_OK && k - waited >= 25)
            status = c->wait(c->context, pending[waited++], err);
    }
    while (status == PONS_OK && waited < SUMS)
        status = c->wait(c->context, pending[waited++], err);
    return status;
}

static void check_sums(const scene *s)
{
    for (int r = 0; r < s->replicas; r++)
        for (int k = 0; k < SUMS; k++)
            ck_assert_msg(memcmp(s->buffer[r][k], s->expected[k],
                                 sizeof(float) * (size_t)s->count[k]) == 0,
                          "%d replicas, sum %d of replica %d", s->replicas, k, r);
}

START_TEST(replica_sums_equal_the_pairwise_sum_bit_for_bit)
{
    for (int replicas = 1; replicas <= MOST; replicas++) {
        pons_error err = PONS_ERROR_INIT;
        scene s;

        scene_open(&s, replicas);
        ck_assert_msg(replica_threads_run(s.replica_threads, take_part, &s, &err) == PONS_OK, "%s",
                      err.text);
        check_sums(&s);
        scene_close(&s);
    }
}
END_TEST

START_TEST(the_error_of_a_failed_replica_ends_the_others)
{
    for (int fails = 0; fails < 4; fails++) {
        pons_error err = PONS_ERROR_INIT;
        char expected[64];
        scene s;

        scene_open(&s, 4);
        s.fails = fails;
        snprintf(expected, sizeof expected, "replica %d found no case", fails);
        ck_assert_int_eq(replica_threads_run(s.replica_threads, take_part, &s, &err), PONS_DATA);
        ck_assert_str_eq(err.text, expected);
        scene_close(&s);
    }
}
END_TEST

START_TEST(replicas_with_different_counts_are_named)
{
    pons_error err = PONS_ERROR_INIT;
    scene s;

    scene_open(&s, 2);
    s.uneven = true;
    ck_assert_int_eq(replica_threads_run(s.replica_threads, take_part, &s, &err),
                     PONS_COMMUNICATION);
    ck_assert_msg(strstr(err.text, "sum 3: replica ") != NULL, "%s", err.text);
    scene_close(&s);
}
END_TEST

static pons_status count_members(void *context, int number, pons_error *err)
{
    atomic_fetch_add((atomic_int *)context, 1 << 8 * number);
    return PONS_OK;
}

START_TEST(every_replica_thread_runs_once_a_round)
{
    for (int count = 1; count <= 3; count++) {
        pons_error err = PONS_ERROR_INIT;
        atomic_int seen = 0;
        replica_threads *c;

        ck_assert_int_eq(replica_threads_open(count, NULL, NULL, &c, &err), PONS_OK);
        for (int round = 1; round <= 100; round++) {
            ck_assert_int_eq(replica_threads_run(c, count_members, &seen, &err), PONS_OK);
            for (int i = 0; i < count; i++)
                ck_assert_int_eq(atomic_load(&seen) >> 8 * i & 0xff, round);
        }
        replica_threads_close(c);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("local");

    tcase_add_test(c, replica_sums_equal_the_pairwise_sum_bit_for_bit);
    tcase_add_test(c, the_error_of_a_failed_replica_ends_the_others);
    tcase_add_test(c, replicas_with_different_counts_are_named);
    tcase_add_test(c, every_replica_thread_runs_once_a_round);
    return suite_run();
}
