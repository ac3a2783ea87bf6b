/*
 * check_gloo.c - the comm plugin 'gloo' over loopback, between forked processes.
 */
#include <stdlib.h>

#include "comm_trial.h"
#include "plugin/plugin_load.h"
#include "processes.h"
#include "suite.h"

typedef struct work_context {
    const pons_comm_operations *operations;
    const comm_trial *trial;
} work_context;

static const pons_comm_operations *load(void)
{
    pons_error err = PONS_ERROR_INIT;
    const plugin *p;

    if (plugin_load(PONS_KIND_COMM, "gloo", sizeof(pons_comm_operations), NULL, &p, &err)
        != PONS_OK)
        ck_abort_msg("%s", err.text);
    return p->operations;
}

static pons_status join(processes *p, int rank, const pons_comm_operations *o, const char *address,
                        comm_party *out, pons_error *err)
{
    pons_comm_store store = { p, table_set, table_get };
    pons_comm_place place = { .rank = rank, .size = p->count, .local_rank = rank,
                              .local_size = p->count, .address = address,
                              .timeout_s = p->patience };

    *out = (comm_party){ .operations = o, .rank = rank, .size = p->count };
    return o->open(NULL, &place, &store, &out->comm, err);
}

/* Nobody closes while another one is still reading. */
static void leave(processes *p, const comm_party *party)
{
    char key[32];
    size_t size;
    char value[8];

    snprintf(key, sizeof key, "left %d", party->rank);
    table_set(p, key, "", 1, NULL);
    for (int r = 0; r < party->size; r++) {
        snprintf(key, sizeof key, "left %d", r);
        table_get(p, key, value, sizeof value, &size, NULL);
    }
    party->operations->close(party->comm);
}

static pons_status take_part(processes *p, int rank, void *context, pons_error *err)
{
    work_context *w = context;
    comm_party party;

    if (join(p, rank, w->operations, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    w->trial->run(&party, err);
    if (err->status == PONS_OK)
        leave(p, &party);
    return err->status;
}

START_TEST(every_trial_is_passed_by_one_to_five_processes)
{
    work_context w = { .operations = load() };

    for (w.trial = comm_trials; w.trial->run != NULL; w.trial++)
        for (int count = 1; count <= 5; count++) {
            processes *p = processes_new(count);
            processes_start(p, take_part, &w);
            processes_join(p, 60);
            for (int r = 0; r < count; r++)
                ck_assert_msg(p->code[r] == 0, "%s: process %d of %d: code %d, %s", w.trial->name,
                              r, count, p->code[r], p->err[r].text);
            processes_free(p);
        }
}
END_TEST

/* Rank 0 sums alone and is told to stop by another thread; the others start later. */
typedef struct stopper {
    const comm_party *party;
    double when;
} stopper;

static void *stop_soon(void *context)
{
    stopper *s = context;

    usleep(200000);
    s->when = processes_time();
    s->party->operations->abort(s->party->comm);
    return NULL;
}

static pons_status hang_and_abort(processes *p, int rank, void *context, pons_error *err)
{
    work_context *w = context;
    enum { COUNT = 500000 };
    float *buffer = calloc(COUNT, sizeof *buffer);
    pons_error late = PONS_ERROR_INIT;
    comm_party party;
    void *pending;
    stopper s = { &party, 0 };
    pthread_t thread;

    if (join(p, rank, w->operations, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    if (rank == 0)
        pthread_create(&thread, NULL, stop_soon, &s);
    else
        usleep(600000);
    if (party.operations->all_reduce(party.comm, buffer, COUNT, PONS_F32, &pending, err) == PONS_OK
        && comm_end(&party, pending, 10, err) != PONS_COMM_FAILED)
        pons_fail(err, PONS_FAILURE, "the sum has not failed");
    if (rank == 0) {
        pthread_join(thread, NULL);
        p->note[rank] = processes_time() - s.when;
    }
    if (party.operations->barrier(party.comm, &pending, &late) == PONS_OK)
        comm_end(&party, pending, 1, &late);
    party.operations->close(party.comm);
    free(buffer);
    return late.status == PONS_OK ? pons_fail(err, PONS_FAILURE, "a later one did not fail")
                                  : err->status;
}

START_TEST(abort_ends_what_hangs_within_a_second_for_all)
{
    work_context w = { .operations = load() };
    processes *p = processes_new(3);

    processes_start(p, hang_and_abort, &w);
    processes_join(p, 20);
    for (int r = 0; r < 3; r++) {
        ck_assert_msg(p->err[r].status == PONS_COMMUNICATION, "rank %d: code %d, '%s'", r,
                      p->code[r], p->err[r].text);
    }
    ck_assert_msg(p->note[0] < 1, "abort took %g s", p->note[0]);
    processes_free(p);
}
END_TEST

static pons_status sum_without_the_last(processes *p, int rank, void *context, pons_error *err)
{
    work_context *w = context;
    enum { COUNT = 500000 };
    float *buffer = calloc(COUNT, sizeof *buffer);
    comm_party party;
    void *pending;

    if (join(p, rank, w->operations, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    for (int k = 0; err->status == PONS_OK; k++) {
        if (rank == p->count - 1 && k == 3) {
            p->note[rank] = processes_time();
            raise(SIGKILL);
        }
        if (party.operations->all_reduce(party.comm, buffer, COUNT, PONS_F32, &pending,
                                         err) == PONS_OK
            && comm_end(&party, pending, 10, err) == PONS_COMM_RUNNING)
            pons_fail(err, PONS_FAILURE, "the sum hangs");
    }
    party.operations->close(party.comm);
    return err->status;
}

START_TEST(the_death_of_a_process_ends_the_sums_of_the_others)
{
    work_context w = { .operations = load() };

    for (int count = 2; count <= 4; count++) {
        processes *p = processes_new(count);
        processes_start(p, sum_without_the_last, &w);
        processes_join(p, 20);
        for (int r = 0; r < count - 1; r++) {
            ck_assert_msg(p->err[r].status == PONS_COMMUNICATION, "rank %d: code %d, '%s'", r,
                          p->code[r], p->err[r].text);
            ck_assert_msg(p->ended[r] - p->note[count - 1] < 2, "rank %d took %g s", r,
                          p->ended[r] - p->note[count - 1]);
        }
        processes_free(p);
    }
}
END_TEST

static pons_status start_something_else(processes *p, int rank, void *context, pons_error *err)
{
    work_context *w = context;
    double buffer[64] = { 0 };
    comm_party party;
    void *pending;
    pons_status status;

    if (join(p, rank, w->operations, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    if (party.operations->all_reduce(party.comm, buffer, 64, PONS_F32, &pending, err) == PONS_OK)
        comm_end(&party, pending, 10, err);
    if (rank == 1)
        status = party.operations->broadcast(party.comm, buffer, 100, 1, &pending, err);
    else
        status = party.operations->all_reduce(party.comm, buffer, 64, PONS_F64, &pending, err);
    if (status == PONS_OK && comm_end(&party, pending, 10, err) == PONS_COMM_RUNNING)
        pons_fail(err, PONS_FAILURE, "it hangs");
    party.operations->close(party.comm);
    return err->status;
}

START_TEST(different_collectives_are_named_by_both_names)
{
    work_context w = { .operations = load() };
    processes *p = processes_new(3);

    processes_start(p, start_something_else, &w);
    processes_join(p, 20);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(p->err[r].status == PONS_COMMUNICATION, "rank %d: code %d, '%s'", r,
                      p->code[r], p->err[r].text);
    ck_assert_str_eq(p->err[1].text, "collective 1: rank 1 starts a broadcast of 100 bytes from "
                     "rank 1, rank 0 an all-reduce of 512 bytes (f64)");
    processes_free(p);
}
END_TEST

static pons_status come_alone(processes *p, int rank, void *context, pons_error *err)
{
    work_context *w = context;
    comm_party party;

    if (rank == 1)
        return PONS_OK;
    p->note[rank] = processes_time();
    join(p, rank, w->operations, "127.0.0.1", &party, err);
    p->note[rank] = processes_time() - p->note[rank];
    return err->status;
}

START_TEST(a_process_that_never_comes_is_waited_for_as_long_as_said)
{
    work_context w = { .operations = load() };
    processes *p = processes_new(2);

    p->patience = 0.5;
    processes_start(p, come_alone, &w);
    processes_join(p, 20);
    ck_assert_msg(p->err[0].status == PONS_COMMUNICATION, "code %d, '%s'", p->code[0],
                  p->err[0].text);
    ck_assert_msg(strstr(p->err[0].text, "cannot connect the processes: nobody has set 'gloo.")
                  != NULL, "%s", p->err[0].text);
    ck_assert_msg(p->note[0] >= 0.5 && p->note[0] < 3, "%g s", p->note[0]);
    processes_free(p);
}
END_TEST

static pons_status come_elsewhere(processes *p, int rank, void *context, pons_error *err)
{
    work_context *w = context;
    comm_party party;

    return join(p, rank, w->operations, "192.0.2.1", &party, err);
}

START_TEST(an_address_of_another_machine_is_refused)
{
    work_context w = { .operations = load() };
    processes *p = processes_new(1);

    processes_start(p, come_elsewhere, &w);
    processes_join(p, 20);
    ck_assert_msg(p->err[0].status == PONS_COMMUNICATION, "code %d, '%s'", p->code[0],
                  p->err[0].text);
    ck_assert_msg(strstr(p->err[0].text, "cannot connect the processes") != NULL, "%s",
                  p->err[0].text);
    processes_free(p);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("gloo");

    tcase_add_test(c, every_trial_is_passed_by_one_to_five_processes);
    tcase_add_test(c, abort_ends_what_hangs_within_a_second_for_all);
    tcase_add_test(c, the_death_of_a_process_ends_the_sums_of_the_others);
    tcase_add_test(c, different_collectives_are_named_by_both_names);
    tcase_add_test(c, a_process_that_never_comes_is_waited_for_as_long_as_said);
    tcase_add_test(c, an_address_of_another_machine_is_refused);
    return suite_run();
}
