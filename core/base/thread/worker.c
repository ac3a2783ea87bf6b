/*
 * worker.c - the thread that does it, and who waits for whom. What is done is the caller's.
 */
#include "base/thread/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread/thread.h"

enum { NICENESS = 10 };

struct background {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    background_work *work;   /* under way, or about to be; NULL: nothing                          */
    void *context;
    pons_error problem;      /* of work that is done                                              */
    double seconds;
    bool closing;
};

/* Between lock and unlock; the work itself runs unlocked. */
static void do_work(background *b)
{
    pons_error problem = PONS_ERROR_INIT;
    double begin = seconds_now();

    pthread_mutex_unlock(&b->lock);
    b->work(b->context, &problem);
    pthread_mutex_lock(&b->lock);
    b->problem = problem;
    b->seconds = seconds_now() - begin;
    b->work = NULL;
    pthread_cond_broadcast(&b->changed);
}

static void *run(void *context)
{
    background *b = context;

    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    pthread_mutex_lock(&b->lock);
    while (b->work != NULL || !b->closing) {
        if (b->work != NULL)
            do_work(b);
        else
            pthread_cond_wait(&b->changed, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

pons_status background_open(background **out, pons_error *err)
{
    background *b = calloc(1, sizeof *b);

    if (b == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    b->problem = (pons_error)PONS_ERROR_INIT;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    if (thread_start(&b->thread, run, b, "a thread that works beside the steps", err) != PONS_OK) {
        pthread_cond_destroy(&b->changed);
        pthread_mutex_destroy(&b->lock);
        free(b);
        return err->status;
    }
    *out = b;
    return PONS_OK;
}

void background_close(background *b)
{
    if (b == NULL)
        return;
    pthread_mutex_lock(&b->lock);
    b->closing = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* Locked. */
static pons_status take_problem(background *b, pons_error *err)
{
    pons_error problem = b->problem;

    b->problem = (pons_error)PONS_ERROR_INIT;
    if (problem.status != PONS_OK)
        return pons_fail(err, problem.status, "%s", problem.text);
    return PONS_OK;
}

static void wait_idle(background *b)
{
    while (b->work != NULL)
        pthread_cond_wait(&b->changed, &b->lock);
}

pons_status background_start(background *b, background_work *work, void *context, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&b->lock);
    wait_idle(b);
    status = take_problem(b, err);
    if (status == PONS_OK) {
        b->work = work;
        b->context = context;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

pons_status background_check(background *b, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&b->lock);
    status = take_problem(b, err);
    pthread_mutex_unlock(&b->lock);
    return status;
}

pons_status background_wait(background *b, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&b->lock);
    wait_idle(b);
    status = take_problem(b, err);
    pthread_mutex_unlock(&b->lock);
    return status;
}

double background_seconds(background *b)
{
    double seconds;

    pthread_mutex_lock(&b->lock);
    seconds = b->seconds;
    pthread_mutex_unlock(&b->lock);
    return seconds;
}
