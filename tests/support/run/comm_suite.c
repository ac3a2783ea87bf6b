/*
 * comm_suite.c - the tests that all communicators between forked processes share.
 */
#include "support/run/comm_suite.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "plugin/plugin_load.h"
#include "support/suite.h"

static atomic_long nap_count;

static void *count_naps(void *context)
{
    for (;;) {
        usleep(10000);
        atomic_fetch_add(&nap_count, 1);
    }
    return context;
}

double comm_suite_pace(void)
{
    static pthread_t thread;

    if (thread == 0 && pthread_create(&thread, NULL, count_naps, NULL) != 0)
        ck_abort_msg("no thread");
    return 0.01 * (double)atomic_load(&nap_count);
}

const pons_comm_operations *comm_suite_load(void)
{
    pons_error err = PONS_ERROR_INIT;
    const plugin *p;

    if (plugin_load(PONS_KIND_COMM, comm_backend_tested.plugin, sizeof(pons_comm_operations), NULL,
                    &p, &err) != PONS_OK)
        ck_abort_msg("%s", err.text);
    return p->operations;
}

processes *comm_suite_run(int count, double timeout_s, processes_work *work, void *context)
{
    processes *p = processes_new(count);

    comm_suite_load();
    if (timeout_s > 0)
        p->patience = timeout_s;
    processes_start(p, work, context);
    processes_join(p, 30);
    return p;
}

void comm_suite_pass(int count, processes_work *work, void *context)
{
    processes *p = comm_suite_run(count, 0, work, context);

    processes_check(p);
    processes_free(p);
}

pons_status comm_suite_join(processes *p, int rank, const char *address, comm_party *out,
                            pons_error *err)
{
    const comm_backend *b = &comm_backend_tested;
    const pons_comm_operations *o = comm_suite_load();
    char loopback[32];
    pons_comm_store store = { p, table_set, table_get };
    pons_comm_rank_info place = { .rank = rank, .size = p->count, .local_rank = rank,
                                  .local_size = p->count,
                                  .address = address != NULL ? address : loopback,
                                  .timeout_s = p->patience,
                                  .stream = b->stream != NULL ? b->stream() : NULL };

    snprintf(loopback, sizeof loopback, "127.0.0.%d",
             p->per_node > 0 ? 1 + rank / p->per_node : 1);
    *out = (comm_party){ .operations = o, .rank = rank, .size = p->count };
    return o->open(&place, &store, &out->comm, err);
}

pons_status comm_suite_leave(processes *p, const comm_party *party, pons_error *err)
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
    return comm_backend_tested.end != NULL ? comm_backend_tested.end(err) : PONS_OK;
}

/* ---- trials ---------------------------------------------------------------------------------- */

typedef struct work_context {
    const comm_trial *trial;
    bool on_device;
} work_context;

static pons_status run_trial(processes *p, int rank, void *context, pons_error *err)
{
    work_context *w = context;
    comm_party party;

    if (comm_suite_join(p, rank, NULL, &party, err) != PONS_OK)
        return err->status;
    if (w->on_device) {
        party.allocate = comm_backend_tested.allocate;
        party.release = comm_backend_tested.release;
        party.copy = comm_backend_tested.copy;
    }
    w->trial->run(&party, err);
    return err->status == PONS_OK ? comm_suite_leave(p, &party, err) : err->status;
}

void every_trial_is_passed(bool on_device, int most)
{
    work_context w = { .on_device = on_device };

    comm_suite_load();
    for (w.trial = comm_trials; w.trial->run != NULL; w.trial++)
        for (int count = 1; count <= most; count++) {
            processes *p = processes_new(count);
            processes_start(p, run_trial, &w);
            processes_join(p, 60);
            for (int r = 0; r < count; r++)
                ck_assert_msg(p->code[r] == 0, "%s: process %d of %d: code %d, %s", w.trial->name,
                              r, count, p->code[r], p->err[r].text);
            processes_free(p);
        }
}

/* ---- aborts ---------------------------------------------------------------------------------- */

typedef struct stopper {
    processes *processes;
    const comm_party *party;
    double when;
} stopper;

static void *stop_soon(void *context)
{
    stopper *s = context;

    usleep(200000);
    s->when = comm_suite_pace();
    s->party->operations->abort(s->party->comm);
    table_set(s->processes, "aborted", "", 1, NULL);
    return NULL;
}

static pons_status hang_and_abort(processes *p, int rank, void *context, pons_error *err)
{
    enum { COUNT = 500000 };
    float *buffer = calloc(COUNT, sizeof *buffer);
    pons_error late = PONS_ERROR_INIT;
    comm_party party;
    void *pending;
    stopper s = { p, &party, 0 };
    pthread_t thread;
    char word[8];
    size_t size;

    if (comm_suite_join(p, rank, NULL, &party, err) != PONS_OK)
        return err->status;
    if (rank == 0)
        pthread_create(&thread, NULL, stop_soon, &s);
    else
        table_get(p, "aborted", word, sizeof word, &size, NULL);
    if (party.operations->all_reduce(party.comm, buffer, COUNT, PONS_F32, &pending, err) == PONS_OK
        && comm_end(&party, pending, 10, err) != PONS_COMM_FAILED)
        pons_fail(err, PONS_FAILURE, "the sum has not failed");
    if (rank == 0) {
        pthread_join(thread, NULL);
        p->note[rank] = comm_suite_pace() - s.when;
    }
    if (party.operations->barrier(party.comm, &pending, &late) == PONS_OK)
        comm_end(&party, pending, 1, &late);
    party.operations->close(party.comm);
    free(buffer);
    return late.status == PONS_OK ? pons_fail(err, PONS_FAILURE, "a later one did not fail")
                                  : err->status;
}

START_TEST(abort_ends_a_hanging_collective_on_all_ranks_in_a_second)
{
    processes *p = comm_suite_run(3, 0, hang_and_abort, NULL);

    for (int r = 0; r < 3; r++) {
        ck_assert_msg(p->err[r].status == PONS_COMMUNICATION, "rank %d: code %d, '%s'", r,
                      p->code[r], p->err[r].text);
    }
    ck_assert_msg(p->note[0] < 1, "abort took %g s", p->note[0]);
    processes_free(p);
}
END_TEST

/* ---- processes that are missing -------------------------------------------------------------- */

static pons_status sum_without_the_last(processes *p, int rank, void *context, pons_error *err)
{
    enum { COUNT = 500000 };
    float *buffer = calloc(COUNT, sizeof *buffer);
    comm_party party;
    void *pending;

    if (comm_suite_join(p, rank, NULL, &party, err) != PONS_OK)
        return err->status;
    for (int k = 0; err->status == PONS_OK; k++) {
        if (rank == p->count - 1 && k == 3) {
            p->note[rank] = seconds_now();
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

/* True: the other processes have ended soon after the death of the last one. */
static bool die_among(int count)
{
    processes *p = processes_new(count);
    bool soon = true;

    processes_start(p, sum_without_the_last, NULL);
    processes_join(p, 20);
    for (int r = 0; r < count - 1; r++) {
        ck_assert_msg(p->err[r].status == PONS_COMMUNICATION, "rank %d: code %d, '%s'", r,
                      p->code[r], p->err[r].text);
        double took = p->ended[r] - p->note[count - 1];
        if (took >= 2)
            printf("rank %d took %g s\n", r, took);
        soon = soon && took < 2;
    }
    processes_free(p);
    return soon;
}

/* A paused machine may delay one round; the third late round fails. */
START_TEST(a_killed_process_ends_the_sums_of_the_others)
{
    comm_suite_load();
    for (int count = 2; count <= 4; count++)
        for (int round = 0; !die_among(count); round++)
            ck_assert_int_lt(round, 2);
}
END_TEST

void comm_suite_add_faults(TCase *c, bool holds, const char *what)
{
    suite_add_test_if(c, holds, what, abort_ends_a_hanging_collective_on_all_ranks_in_a_second);
    suite_add_test_if(c, holds, what, a_killed_process_ends_the_sums_of_the_others);
}

static pons_status join_alone(processes *p, int rank, void *context, pons_error *err)
{
    comm_party party;

    if (rank == 1)
        return PONS_OK;
    p->note[0] = seconds_now();
    p->note[1] = comm_suite_pace();
    comm_suite_join(p, rank, NULL, &party, err);
    p->note[0] = seconds_now() - p->note[0];
    p->note[1] = comm_suite_pace() - p->note[1];
    return err->status;
}

void who_never_comes_is_not_waited_for(const char *expected)
{
    processes *p = comm_suite_run(2, 0.5, join_alone, NULL);

    ck_assert_msg(p->err[0].status == PONS_COMMUNICATION, "code %d, '%s'", p->code[0],
                  p->err[0].text);
    ck_assert_msg(strstr(p->err[0].text, expected) != NULL, "%s", p->err[0].text);
    ck_assert_msg(p->note[0] >= 0.5 && p->note[1] < 3, "%g s", p->note[0]);
    processes_free(p);
}
