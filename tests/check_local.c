/*
 * check_local.c - sums over the replicas of a process: R2's tree by share, whatever comes first.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "device/replica_threads.h"
#include "device/local_comm.h"
#include "suite.h"

enum { MOST = 7, SUMS = 40 };

/* Buffers of all replicas, and what they should become. */
typedef struct scene {
    int replicas;
    local_comm *comm;
    crew *crew;
    int64_t count[SUMS];
    float *buffer[MOST][SUMS], *expected[SUMS];
    int fails;                 /* number of the replica that fails in the middle, -1: none        */
    bool uneven;               /* replica 1 brings another count                                  */
} scene;

static void failed(void *context, int number)
{
    local_comm_abort(((scene *)context)->comm, number);
}

/* R2, written as the rule says it. */
static float tree(const float *a, int n)
{
    int p = 1;

    if (n == 1)
        return a[0];
    while (2 * p < n)
        p *= 2;
    return tree(a, p) + tree(a + p, n - p);
}

static float draw(int replica, int sum, int64_t i)
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
    ck_assert_int_eq(crew_open(replicas, failed, s, &s->crew, &err), PONS_OK);
    for (int k = 0; k < SUMS; k++) {
        s->count[k] = k % 5 == 0 ? 1 : k * k * 7 + k;
        s->expected[k] = malloc(sizeof(float) * (size_t)s->count[k]);
        for (int r = 0; r < replicas; r++)
            s->buffer[r][k] = malloc(sizeof(float) * (size_t)s->count[k]);
        for (int64_t i = 0; i < s->count[k]; i++) {
            for (int r = 0; r < replicas; r++)
                part[r] = s->buffer[r][k][i] = draw(r, k, i);
            s->expected[k][i] = tree(part, replicas);
        }
    }
}

static void scene_close(scene *s)
{
    crew_close(s->crew);
    local_comm_free(s->comm);
    for (int k = 0; k < SUMS; k++) {
        free(s->expected[k]);
        for (int r = 0; r < s->replicas; r++)
            free(s->buffer[r][k]);
    }
}

/* Starts run ahead of waits by up to 25, replicas at different paces. */
static pons_status take_part(void *context, int number, pons_error *err)
{
    scene *s = context;
    const program_collective *c = local_comm_seat(s->comm, number);
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

START_TEST(sums_are_the_tree_of_all_replicas_bit_by_bit)
{
    for (int replicas = 1; replicas <= MOST; replicas++) {
        pons_error err = PONS_ERROR_INIT;
        scene s;

        scene_open(&s, replicas);
        ck_assert_msg(crew_run(s.crew, take_part, &s, &err) == PONS_OK, "%s", err.text);
        check_sums(&s);
        scene_close(&s);
    }
}
END_TEST

START_TEST(a_replica_that_fails_ends_the_others_with_its_own_error)
{
    for (int fails = 0; fails < 4; fails++) {
        pons_error err = PONS_ERROR_INIT;
        char expected[64];
        scene s;

        scene_open(&s, 4);
        s.fails = fails;
        snprintf(expected, sizeof expected, "replica %d found no case", fails);
        ck_assert_int_eq(crew_run(s.crew, take_part, &s, &err), PONS_DATA);
        ck_assert_str_eq(err.text, expected);
        scene_close(&s);
    }
}
END_TEST

START_TEST(replicas_meet_again_after_a_failure)
{
    pons_error err = PONS_ERROR_INIT;
    scene s;

    scene_open(&s, 3);
    s.fails = 2;
    ck_assert_int_eq(crew_run(s.crew, take_part, &s, &err), PONS_DATA);
    scene fresh;
    scene_open(&fresh, 3);
    for (int r = 0; r < 3; r++)
        for (int k = 0; k < SUMS; k++)
            memcpy(s.buffer[r][k], fresh.buffer[r][k], sizeof(float) * (size_t)s.count[k]);
    s.fails = -1;
    err = (pons_error)PONS_ERROR_INIT;
    local_comm_reset(s.comm);
    ck_assert_msg(crew_run(s.crew, take_part, &s, &err) == PONS_OK, "%s", err.text);
    check_sums(&s);
    scene_close(&s);
    scene_close(&fresh);
}
END_TEST

START_TEST(replicas_that_bring_different_counts_are_named)
{
    pons_error err = PONS_ERROR_INIT;
    scene s;

    scene_open(&s, 2);
    s.uneven = true;
    ck_assert_int_eq(crew_run(s.crew, take_part, &s, &err), PONS_COMMUNICATION);
    ck_assert_msg(strstr(err.text, "sum 3: replica ") != NULL, "%s", err.text);
    scene_close(&s);
}
END_TEST

static pons_status count_members(void *context, int number, pons_error *err)
{
    atomic_fetch_add((atomic_int *)context, 1 << 8 * number);
    return PONS_OK;
}

START_TEST(every_member_of_a_crew_works_once_a_round)
{
    for (int count = 1; count <= 3; count++) {
        pons_error err = PONS_ERROR_INIT;
        atomic_int seen = 0;
        crew *c;

        ck_assert_int_eq(crew_open(count, NULL, NULL, &c, &err), PONS_OK);
        for (int round = 1; round <= 100; round++) {
            ck_assert_int_eq(crew_run(c, count_members, &seen, &err), PONS_OK);
            for (int i = 0; i < count; i++)
                ck_assert_int_eq(atomic_load(&seen) >> 8 * i & 0xff, round);
        }
        crew_close(c);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("local");

    tcase_add_test(c, sums_are_the_tree_of_all_replicas_bit_by_bit);
    tcase_add_test(c, a_replica_that_fails_ends_the_others_with_its_own_error);
    tcase_add_test(c, replicas_meet_again_after_a_failure);
    tcase_add_test(c, replicas_that_bring_different_counts_are_named);
    tcase_add_test(c, every_member_of_a_crew_works_once_a_round);
    return suite_run();
}
