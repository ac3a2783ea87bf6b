/*
 * replica_threads.c - threads that live as long as their replicas, so that each keeps what is set
 * up once per thread: its processors and its OpenMP team.
 */
#include "device/replica_threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/thread/worker.h"

typedef struct member {
    replica_threads *replica_threads;
    int number;
    worker *thread;
    pons_error error;
} member;

struct replica_threads {
    int count, started;
    void (*failed)(void *context, int number);
    void *failed_context;
    pthread_mutex_t lock;
    int first_failed;         /* first replica that failed in this round, -1: none                */
    replica_task *work;
    void *context;
    member *member;
};

static void record_failure(replica_threads *c, int number)
{
    bool first;

    pthread_mutex_lock(&c->lock);
    first = c->first_failed < 0;
    if (first)
        c->first_failed = number;
    pthread_mutex_unlock(&c->lock);
    if (first && c->failed != NULL)
        c->failed(c->failed_context, number);
}

/* Each member keeps its failure. The first one in time is the failure of the run. */
static pons_status run_task(void *context, pons_error *err)
{
    member *m = context;

    (void)err;
    m->error = (pons_error)PONS_ERROR_INIT;
    if (m->replica_threads->work(m->replica_threads->context, m->number, &m->error) != PONS_OK)
        record_failure(m->replica_threads, m->number);
    return PONS_OK;
}

static pons_status start_members(replica_threads *c, pons_error *err)
{
    for (; c->count > 1 && c->started < c->count; c->started++)
        if (worker_open(WORKER_NORMAL, "the thread of a replica", &c->member[c->started].thread,
                        err) != PONS_OK)
            break;
    return err->status;
}

pons_status replica_threads_open(int count, void (*failed)(void *context, int number),
                                 void *context, replica_threads **out, pons_error *err)
{
    replica_threads *c = calloc(1, sizeof *c);

    if (c == NULL || (c->member = calloc((size_t)count, sizeof *c->member)) == NULL) {
        free(c);
        return pons_fail(err, PONS_DEVICE, "out of memory for %d replicas", count);
    }
    c->count = count;
    c->failed = failed;
    c->failed_context = context;
    pthread_mutex_init(&c->lock, NULL);
    for (int i = 0; i < count; i++)
        c->member[i] = (member){ .replica_threads = c, .number = i, .error = PONS_ERROR_INIT };
    if (start_members(c, err) != PONS_OK)
        replica_threads_close(c);
    else
        *out = c;
    return err->status;
}

void replica_threads_close(replica_threads *c)
{
    if (c == NULL)
        return;
    for (int i = 0; i < c->started; i++)
        worker_close(c->member[i].thread);
    pthread_mutex_destroy(&c->lock);
    free(c->member);
    free(c);
}

pons_status replica_threads_run(replica_threads *c, replica_task *work, void *context,
                                pons_error *err)
{
    pons_error none = PONS_ERROR_INIT;

    c->work = work;
    c->context = context;
    c->first_failed = -1;
    for (int i = 0; i < c->started; i++)
        worker_start(c->member[i].thread, run_task, &c->member[i], &none);
    for (int i = 0; i < c->started; i++)
        worker_wait(c->member[i].thread, &none);
    if (c->started == 0)
        run_task(&c->member[0], &none);
    if (c->first_failed < 0)
        return PONS_OK;
    return pons_fail(err, c->member[c->first_failed].error.status, "%s",
                     c->member[c->first_failed].error.text);
}
