/*
 * check_nccl.c - the comm plugin 'nccl' on a made-up GPU and library of tests/fake: the contract
 * of all communicators and every known fault of NCCL. On a real GPU one process joins with itself.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "support/graph/fakes.h"
#include "support/run/comm_suite.h"
#include "support/suite.h"

#define AT_ONCE_S 1.0 /* promise of comm.h after a failure                                        */

/* NCCL does not join a GPU with itself: on a real GPU there is one process. */
START_TEST(all_communicator_trials_pass_with_host_buffers)
{
    every_trial_is_passed(false, fakes_are_away() ? 1 : 4);
}
END_TEST

START_TEST(all_communicator_trials_pass_with_gpu_buffers)
{
    every_trial_is_passed(true, fakes_are_away() ? 1 : 3);
}
END_TEST

START_TEST(a_missing_process_is_awaited_until_the_timeout)
{
    who_never_comes_is_not_waited_for("NCCL has not joined the 2 processes within 0.5 s");
}
END_TEST

/* ---- missing parts of a machine -------------------------------------------------------------- */

static const struct { const char *cuda, *nccl, *expected; } lacks[] = {
    { "none", "", "the NVIDIA driver finds no GPU that it can use: no CUDA-capable device is "
                  "detected (CUDA_ERROR_NO_DEVICE)" },
    { "0", "", "the NVIDIA driver has no GPU to offer\n"
               "hint: CUDA_VISIBLE_DEVICES may hide all of them" },
    { "1", "version=21304", "NCCL 2.13.4 is too old: expected at least 2.14" },
    { "1", "version=2708", "NCCL 2.7.8 is too old: expected at least 2.14" },
};

START_TEST(missing_nccl_requirements_are_reported_in_one_line)
{
    const pons_comm_operations *o = comm_suite_load();
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(o->available(&err) == PONS_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        pons_error found = PONS_ERROR_INIT;
        setenv("FAKE_CUDA", lacks[i].cuda, 1);
        setenv("FAKE_NCCL", lacks[i].nccl, 1);
        ck_assert_int_eq(o->available(&found), PONS_DEVICE);
        ck_assert_str_eq(found.text, lacks[i].expected);
    }
}
END_TEST

START_TEST(nccl_refuses_cpu_devices)
{
    const pons_comm_operations *o = comm_suite_load();
    const pons_comm_rank_info place = { .size = 1, .local_size = 1, .timeout_s = 1 };
    pons_error err = PONS_ERROR_INIT;
    void *comm;

    ck_assert_int_eq(o->open(&place, NULL, &comm, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "'nccl' joins GPUs, not processors") != NULL, "%s", err.text);
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

typedef struct fault {
    const char *name;
    int rank;                 /* rank with the faulty library                                     */
    const char *script;
    const char *expected;     /* part of its line                                                 */
    const char *others;       /* part of the others' lines                                        */
    pons_status status;       /* status of the faulty rank                                        */
} fault;

static pons_status open_faulty(processes *p, int rank, void *context, pons_error *err)
{
    const fault *f = context;
    comm_party party;

    if (rank == f->rank)
        setenv("FAKE_NCCL", f->script, 1);
    p->note[rank] = comm_suite_pace();
    if (comm_suite_join(p, rank, "127.0.0.1", &party, err) == PONS_OK)
        pons_fail(err, PONS_FAILURE, "it is open");
    p->note[rank] = comm_suite_pace() - p->note[rank];
    return err->status;
}

#define START_S 2.0 /* time to join on a busy machine */

static const fault bad_starts[] = {
    { "init never completes", 1, "init-never",
      "NCCL has not joined the 3 processes within 2 s",
      "NCCL has not joined the 3 processes within 2 s", PONS_COMMUNICATION },
    { "init fails", 2, "init-error",
      "joining the processes by NCCL failed: unhandled system error (run with NCCL_DEBUG=INFO for "
      "details): socketPollConnect: connect to 10.0.0.7<41217> returned Connection refused",
      "NCCL has not joined the 3 processes within 2 s", PONS_COMMUNICATION },
    { "the GPU is full", 0, "init-memory",
      "joining the processes by NCCL failed: unhandled cuda error (run with NCCL_DEBUG=INFO for "
      "details): Cuda failure 2 'out of memory'",
      "NCCL has not joined the 3 processes within 2 s", PONS_DEVICE },
    { "the abort of an init hangs", 0, "init-never abort-hangs",
      "NCCL has not joined the 3 processes within 2 s",
      "NCCL has not joined the 3 processes within 2 s", PONS_COMMUNICATION },
};

START_TEST(a_failed_nccl_start_is_reported_within_the_timeout)
{
    const fault *f = &bad_starts[_i];
    processes *p = comm_suite_run(3, START_S, open_faulty, (void *)f);

    for (int r = 0; r < 3; r++) {
        ck_assert_int_eq(p->err[r].status, r == f->rank ? f->status : PONS_COMMUNICATION);
        ck_assert_str_eq(p->err[r].text, r == f->rank ? f->expected : f->others);
        ck_assert_msg(p->note[r] < START_S + 2 * AT_ONCE_S, "%s: rank %d took %g s", f->name, r,
                      p->note[r]);
    }
    processes_free(p);
}
END_TEST

/* Run sums until one fails; the faulty rank notes the start of that one. */
static pons_status sum_faulty(processes *p, int rank, void *context, pons_error *err)
{
    const fault *f = context;
    double buffer[1000] = { 0 };
    comm_party party;
    void *pending;

    if (rank == f->rank)
        setenv("FAKE_NCCL", f->script, 1);
    if (comm_suite_join(p, rank, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    for (int k = 0; k < 5 && err->status == PONS_OK; k++) {
        p->note[rank] = comm_suite_pace();
        if (party.operations->all_reduce(party.comm, buffer, 1000, PONS_F64, &pending,
                                         err) == PONS_OK
            && comm_end(&party, pending, 10, err) == PONS_COMM_RUNNING)
            pons_fail(err, PONS_FAILURE, "the sum hangs");
    }
    party.operations->close(party.comm);
    p->note[rank] = comm_suite_pace() - p->note[rank];
    return err->status == PONS_OK ? pons_fail(err, PONS_FAILURE, "no sum has failed")
                                  : err->status;
}

static const fault bad_sums[] = {
    { "an error that comes later", 1, "error=3",
      "a collective failed: unhandled system error (run with NCCL_DEBUG=INFO for details): "
      "ibv_poll_cq: completion with error 12, vendor err 129",
      "a collective failed: remote process exited or there was a network error: socketProgress: "
      "Connection closed by remote peer rank ", PONS_COMMUNICATION },
    { "an error after a group has worked for a while", 0, "error=5",
      "ibv_poll_cq: completion with error 12, vendor err 129",
      "Connection closed by remote peer rank ", PONS_COMMUNICATION },
    { "a peer that is lost", 0, "lost=2",
      "a collective failed: remote process exited or there was a network error: NET/IB: Got "
      "completion from peer rank 1 with status 12",
      "Connection closed by remote peer rank ", PONS_COMMUNICATION },
    { "an error whose abort hangs", 2, "error=2 abort-hangs",
      "ibv_poll_cq: completion with error 12, vendor err 129",
      "Connection closed by remote peer rank ", PONS_COMMUNICATION },
};

START_TEST(an_nccl_error_is_reported_with_its_message)
{
    const fault *f = &bad_sums[_i];
    processes *p = comm_suite_run(3, 0, sum_faulty, (void *)f);

    for (int r = 0; r < 3; r++) {
        const char *expected = r == f->rank ? f->expected : f->others;
        ck_assert_int_eq(p->err[r].status, r == f->rank ? f->status : PONS_COMMUNICATION);
        ck_assert_msg(strstr(p->err[r].text, expected) != NULL, "%s: rank %d: %s", f->name, r,
                      p->err[r].text);
    }
    /* The time covers the error and the close, whose wait for a hanging abort is bounded. */
    ck_assert_msg(p->note[f->rank] < 2 * AT_ONCE_S, "%s: %g s", f->name, p->note[f->rank]);
    processes_free(p);
}
END_TEST

/* ---- aborts ---------------------------------------------------------------------------------- */

static void *abort_it(void *context)
{
    const comm_party *party = context;

    usleep(200000);
    party->operations->abort(party->comm);
    return NULL;
}

/* Rank 1 leaves before the second sum unnoticed; three threads abort it. */
static pons_status abort_by_many(processes *p, int rank, void *context, pons_error *err)
{
    float buffer[100] = { 0 };
    pthread_t thread[3];
    comm_party party;
    void *pending[2];
    double before;

    setenv("FAKE_NCCL", context, 1);
    if (comm_suite_join(p, rank, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    if (rank == 1)
        _exit(0);
    for (int k = 0; k < 2; k++)
        if (party.operations->all_reduce(party.comm, buffer, 100, PONS_F32, &pending[k],
                                         err) != PONS_OK)
            return err->status;
    if (party.operations->poll(party.comm, pending[0], 0.3, err) != PONS_COMM_RUNNING)
        return pons_fail(err, PONS_FAILURE, "the loss was noticed");
    for (int k = 0; k < 3; k++)
        pthread_create(&thread[k], NULL, abort_it, &party);
    before = comm_suite_pace();
    for (int k = 0; k < 2; k++)
        if (party.operations->poll(party.comm, pending[k], 10, err) != PONS_COMM_FAILED)
            return pons_fail(err, PONS_FAILURE, "sum %d has not failed", k);
    for (int k = 0; k < 3; k++)
        pthread_join(thread[k], NULL);
    party.operations->abort(party.comm);
    party.operations->close(party.comm);
    p->note[rank] = comm_suite_pace() - before;
    return err->status;
}

static const char *const silent[] = { "mute", "mute abort-hangs" };

START_TEST(concurrent_aborts_end_the_communicator_once)
{
    processes *p = comm_suite_run(2, 0, abort_by_many, (void *)silent[_i]);

    ck_assert_str_eq(p->err[0].text, "the communicator was aborted");
    ck_assert_int_eq(p->err[0].status, PONS_COMMUNICATION);
    /*
     * The abort comes after 0.2 s. The end follows at once, or a second later for an abort that
     * hangs.
     */
    ck_assert_msg(p->note[0] < 0.2 + (_i == 0 ? 1 : 2) * AT_ONCE_S, "%g s", p->note[0]);
    processes_free(p);
}
END_TEST

static pons_status start_something_else(processes *p, int rank, void *context, pons_error *err)
{
    double buffer[64] = { 0 };
    comm_party party;
    pthread_t thread;
    void *pending;
    pons_status status;

    if (comm_suite_join(p, rank, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    if (rank == 1)
        status = party.operations->broadcast(party.comm, buffer, 100, 1, &pending, err);
    else
        status = party.operations->all_reduce(party.comm, buffer, 64, PONS_F64, &pending, err);
    pthread_create(&thread, NULL, abort_it, &party);
    if (status == PONS_OK && comm_end(&party, pending, 10, err) != PONS_COMM_FAILED)
        pons_fail(err, PONS_FAILURE, "it has not failed");
    pthread_join(thread, NULL);
    party.operations->close(party.comm);
    return err->status;
}

/* NCCL does not detect the difference; the group does (check_group_nccl). */
START_TEST(different_collectives_hang_until_the_abort)
{
    processes *p = comm_suite_run(2, 0, start_something_else, NULL);

    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(p->err[r].status, PONS_COMMUNICATION);
    processes_free(p);
}
END_TEST

/* ---- groups, times, buffers ------------------------------------------------------------------ */

static pons_status sum_in_groups(processes *p, int rank, void *context, pons_error *err)
{
    enum { GROUPS = 6, SUMS = 4, COUNT = 5000 };
    float cells[COUNT];
    void *buffer[SUMS], *pending[SUMS];
    comm_party party;

    if (comm_suite_join(p, rank, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    for (int g = 0; g < GROUPS && err->status == PONS_OK; g++) {
        party.operations->group_begin(party.comm, err);
        for (int k = 0; k < SUMS; k++) {
            buffer[k] = comm_backend_tested.allocate(sizeof cells);
            for (int i = 0; i < COUNT; i++)
                cells[i] = (float)(rank + 10 * k + i + g);
            comm_backend_tested.copy(buffer[k], cells, sizeof cells);
            party.operations->all_reduce(party.comm, buffer[k], COUNT, PONS_F32, &pending[k], err);
        }
        if (party.operations->poll(party.comm, pending[0], 0.05, err) != PONS_COMM_RUNNING)
            pons_fail(err, PONS_FAILURE, "a sum left before its group");
        party.operations->group_end(party.comm, err);
        for (int k = 0; k < SUMS; k++) {
            if (comm_end(&party, pending[k], 10, err) != PONS_COMM_DONE)
                pons_fail(err, PONS_FAILURE, "sum %d of group %d has not ended", k, g);
            comm_backend_tested.copy(cells, buffer[k], sizeof cells);
            for (int i = 0; i < COUNT; i++)
                if (cells[i] != (float)(3 + 3 * (10 * k + i + g)))
                    pons_fail(err, PONS_FAILURE, "element %d of sum %d is %g", i, k,
                              (double)cells[i]);
            comm_backend_tested.release(buffer[k]);
        }
    }
    party.operations->close(party.comm);
    return err->status == PONS_OK ? comm_backend_tested.end(err) : err->status;
}

START_TEST(collectives_of_a_group_start_together)
{
    comm_suite_pass(3, sum_in_groups, NULL);
}
END_TEST

/* Rank 1 comes 0.2 s late; rank 0 polls 0.4 s after its start. */
static pons_status ask_late(processes *p, int rank, void *context, pons_error *err)
{
    static const float zero[100];
    comm_party party;
    void *buffer, *pending;
    double started;

    if (comm_suite_join(p, rank, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    buffer = comm_backend_tested.allocate(sizeof zero);
    comm_backend_tested.copy(buffer, zero, sizeof zero);
    /* The library puts its first collectives on their stream only at the first poll. */
    for (int k = 0; k < 6; k++)
        if (party.operations->all_reduce(party.comm, buffer, 100, PONS_F32, &pending,
                                         err) == PONS_OK)
            comm_end(&party, pending, 10, err);
    started = seconds_now();
    if (rank == 1)
        usleep(200000);
    if (party.operations->all_reduce(party.comm, buffer, 100, PONS_F32, &pending, err) == PONS_OK) {
        usleep(400000);
        comm_end(&party, pending, 10, err);
        p->note[rank] = party.operations->ended(party.comm) - started;
    }
    comm_backend_tested.release(buffer);
    party.operations->close(party.comm);
    return err->status;
}

START_TEST(the_end_time_of_a_collective_does_not_depend_on_the_poll)
{
    double ended = 0;

    comm_suite_load();
    /* A machine that pauses may be late itself, but not in each round. */
    for (int k = 0; k < 5 && !(ended > 0.15 && ended < 0.38); k++) {
        processes *p = processes_new(2);
        processes_start(p, ask_late, NULL);
        processes_join(p, 30);
        processes_check(p);
        ended = p->note[0];
        processes_free(p);
    }
    ck_assert_msg(ended > 0.15 && ended < 0.38, "it ended after %g s", ended);
}
END_TEST

static pons_status gather_mixed_buffers(processes *p, int rank, void *context, pons_error *err)
{
    char mine[8] = "0123456";
    comm_party party;
    void *pending, *all;
    pons_error refused = PONS_ERROR_INIT;

    if (comm_suite_join(p, rank, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    all = comm_backend_tested.allocate(sizeof mine);
    party.operations->all_gather(party.comm, mine, sizeof mine, all, &pending, &refused);
    comm_backend_tested.release(all);
    party.operations->close(party.comm);
    return strcmp(refused.text, "an all-gather between memory of a GPU and of the host") == 0
           ? PONS_OK : pons_fail(err, PONS_FAILURE, "'%s'", refused.text);
}

START_TEST(a_gather_from_the_host_to_the_gpu_is_refused)
{
    comm_suite_pass(1, gather_mixed_buffers, NULL);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("nccl");

    tcase_add_test(c, all_communicator_trials_pass_with_host_buffers);
    tcase_add_test(c, all_communicator_trials_pass_with_gpu_buffers);
    comm_suite_add_faults(c, !fakes_are_away(), "made-up cards");
    fakes_add_test(c, a_missing_process_is_awaited_until_the_timeout);
    fakes_add_test(c, missing_nccl_requirements_are_reported_in_one_line);
    tcase_add_test(c, nccl_refuses_cpu_devices);
    fakes_add_loop_test(c, a_failed_nccl_start_is_reported_within_the_timeout, 0,
                        (int)(sizeof bad_starts / sizeof *bad_starts));
    fakes_add_loop_test(c, an_nccl_error_is_reported_with_its_message, 0,
                        (int)(sizeof bad_sums / sizeof *bad_sums));
    fakes_add_loop_test(c, concurrent_aborts_end_the_communicator_once, 0,
                        (int)(sizeof silent / sizeof *silent));
    fakes_add_test(c, different_collectives_hang_until_the_abort);
    fakes_add_test(c, collectives_of_a_group_start_together);
    fakes_add_test(c, the_end_time_of_a_collective_does_not_depend_on_the_poll);
    tcase_add_test(c, a_gather_from_the_host_to_the_gpu_is_refused);
    return suite_run();
}
