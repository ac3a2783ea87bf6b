/*
 * replica_threads.c - threads that live as long as their replicas: what a thread has once (its
 * processors, its OpenMP team) it keeps.
 */
#include "device/replica_threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/thread/thread.h"

typedef struct member {
    crew *crew;
    int number;
    pthread_t thread;
    pons_error error;
} member;

struct crew {
    int count, started;
    void (*failed)(void *context, int number);
    void *failed_context;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    long round;               /* pieces of work handed out                                        */
    int busy;                 /* members that have not ended the present one                      */
    bool ending;
    int first_failed;         /* -1: none in this round                                           */
    crew_work *work;
    void *context;
    member *member;
};

static void note_failure(crew *c, int number)
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

static void do_work(member *m)
{
    m->error = (pons_error)PONS_ERROR_INIT;
    if (m->crew->work(m->crew->context, m->number, &m->error) != PONS_OK)
        note_failure(m->crew, m->number);
}

static void *live(void *context)
{
    member *m = context;
    crew *c = m->crew;
    long round = 0;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->round == round && !c->ending)
            pthread_cond_wait(&c->changed, &c->lock);
        if (c->ending)
            break;
        round = c->round;
        pthread_mutex_unlock(&c->lock);
        do_work(m);
        pthread_mutex_lock(&c->lock);
        if (--c->busy == 0)
            pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static pons_status start_members(crew *c, pons_error *err)
{
    for (; c->count > 1 && c->started < c->count; c->started++)
        if (thread_start(&c->member[c->started].thread, live, &c->member[c->started],
                         "the thread of a replica", err) != PONS_OK)
            break;
    return err->status;
}

pons_status crew_open(int count, void (*failed)(void *context, int number), void *context,
                      crew **out, pons_error *err)
{
    crew *c = calloc(1, sizeof *c);

    if (c == NULL || (c->member = calloc((size_t)count, sizeof *c->member)) == NULL) {
        free(c);
        return pons_fail(err, PONS_DEVICE, "out of memory for %d replicas", count);
    }
    c->count = count;
    c->failed = failed;
    c->failed_context = context;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    for (int i = 0; i < count; i++)
        c->member[i] = (member){ .crew = c, .number = i, .error = PONS_ERROR_INIT };
    if (start_members(c, err) != PONS_OK)
        crew_close(c);
    else
        *out = c;
    return err->status;
}

void crew_close(crew *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->started; i++)
        pthread_join(c->member[i].thread, NULL);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c->member);
    free(c);
}

pons_status crew_run(crew *c, crew_work *work, void *context, pons_error *err)
{
    pthread_mutex_lock(&c->lock);
    c->work = work;
    c->context = context;
    c->first_failed = -1;
    c->busy = c->started;
    c->round++;
    pthread_cond_broadcast(&c->changed);
    while (c->busy > 0)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (c->started == 0)
        do_work(&c->member[0]);
    if (c->first_failed < 0)
        return PONS_OK;
    return pons_fail(err, c->member[c->first_failed].error.status, "%s",
                     c->member[c->first_failed].error.text);
}
