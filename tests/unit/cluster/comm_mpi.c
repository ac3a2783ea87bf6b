/*
 * comm_mpi.c - a process of a group that mpirun has started. It runs the trials of comm_trial.h
 * over the plugin 'mpi', then the part that its argument names, and prints one line for a fault.
 *
 *   comm_mpi trials | mismatch | abort | size
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "plugin/plugin_load.h"
#include "support/run/comm_trial.h"

static int number_of(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? atoi(text) : -1;
}

static pons_status try_all(const comm_party *p, pons_error *err)
{
    for (const comm_trial *t = comm_trials; t->run != NULL && err->status == PONS_OK; t++)
        if (t->run(p, err) != PONS_OK)
            fprintf(stderr, "rank %d: %s: %s\n", p->rank, t->name, err->text);
    return err->status;
}

/* Rank 1 starts another collective; all ranks expect a failure. */
static pons_status mismatch_collectives(const comm_party *p, pons_error *err)
{
    double buffer[64] = { 0 };
    pons_error failure = PONS_ERROR_INIT;
    void *pending;
    pons_status status;

    if (p->rank == 1)
        status = p->operations->broadcast(p->comm, buffer, 100, 1, &pending, &failure);
    else
        status = p->operations->all_reduce(p->comm, buffer, 64, PONS_F64, &pending, &failure);
    if (status == PONS_OK && p->rank == 1
        && comm_end(p, pending, 10, &failure) != PONS_COMM_FAILED)
        return pons_fail(err, PONS_FAILURE, "the mismatch was not found");
    if (p->rank == 1 && strstr(failure.text, "rank 1 starts a broadcast of 100 bytes from rank 1, "
                                             "rank 0 an all-reduce of 512 bytes (f64)") == NULL)
        return pons_fail(err, PONS_FAILURE, "rank 1 says '%s'", failure.text);
    p->operations->abort(p->comm);
    return PONS_OK;
}

static void *stop_soon(void *context)
{
    const comm_party *p = context;

    usleep(200000);
    p->operations->abort(p->comm);
    return NULL;
}

/* Rank 0 waits for a collective that no other rank starts, until another thread aborts it. */
static pons_status abort_alone(const comm_party *p, pons_error *err)
{
    pons_error failure = PONS_ERROR_INIT;
    double begin = seconds_now();
    pthread_t thread;
    void *pending;

    if (p->rank > 0) {
        usleep(10000000); /* mpirun ends it before */
        p->operations->abort(p->comm);
        return PONS_OK;
    }
    pthread_create(&thread, NULL, stop_soon, (void *)p);
    if (p->operations->barrier(p->comm, &pending, &failure) == PONS_OK
        && comm_end(p, pending, 10, &failure) != PONS_COMM_FAILED)
        pons_fail(err, PONS_FAILURE, "the barrier has not failed");
    pthread_join(thread, NULL);
    if (seconds_now() - begin > 5)
        pons_fail(err, PONS_FAILURE, "the abort took %g s", seconds_now() - begin - 0.2);
    return err->status;
}

static pons_status nothing(const comm_party *p, pons_error *err)
{
    return PONS_OK;
}

static const struct {
    const char *name;
    pons_status (*run)(const comm_party *p, pons_error *err);
    int more;                 /* expected processes beyond those that exist                       */
    const char *expected;     /* expected error of the open; NULL: it succeeds                    */
} wishes[] = {
    { "trials", try_all, 0, NULL },
    { "mismatch", mismatch_collectives, 0, NULL },
    { "abort", abort_alone, 0, NULL },
    { "size", nothing, 1, "together, the run has" },
};

static int open_and_run(const pons_comm_operations *o, int wish)
{
    pons_comm_rank_info place = { .rank = number_of("OMPI_COMM_WORLD_RANK"),
                                  .size = number_of("OMPI_COMM_WORLD_SIZE") + wishes[wish].more,
                                  .timeout_s = 20 };
    comm_party p = { .operations = o, .rank = place.rank, .size = place.size };
    pons_error err = PONS_ERROR_INIT;

    if (o->open(&place, NULL, &p.comm, &err) != PONS_OK) {
        if (wishes[wish].expected != NULL && strstr(err.text, wishes[wish].expected) != NULL)
            return EXIT_SUCCESS;
    } else if (wishes[wish].expected != NULL) {
        pons_fail(&err, PONS_FAILURE, "it was opened");
    } else {
        wishes[wish].run(&p, &err);
        o->close(p.comm);
    }
    if (err.status != PONS_OK)
        fprintf(stderr, "rank %d: %s\n", place.rank, err.text);
    return err.status == PONS_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    pons_error err = PONS_ERROR_INIT;
    const plugin *p;

    if (plugin_load(PONS_KIND_COMM, "mpi", sizeof(pons_comm_operations), NULL, &p, &err)
        != PONS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; argc == 2 && i < sizeof wishes / sizeof *wishes; i++)
        if (strcmp(argv[1], wishes[i].name) == 0)
            return open_and_run(p->operations, (int)i);
    fprintf(stderr, "comm_mpi: expected one of trials, mismatch, abort, size\n");
    return EXIT_FAILURE;
}
