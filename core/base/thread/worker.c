/*
 * worker.c - the thread of a worker, and the waits for its jobs. The callers bring the jobs.
 */
#include "base/thread/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread/thread.h"

enum { NICENESS = 10 }; /* of WORKER_LOW */

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    worker_priority priority;
    worker_job *job;         /* under way, or about to be; NULL: none                             */
    void *context;
    pons_error problem;      /* of a job that is done                                             */
    double seconds;
    bool closing;
};

/* Between lock and unlock; the job itself runs unlocked. */
static void run_job(worker *w)
{
    pons_error problem = PONS_ERROR_INIT;
    double begin = seconds_now();

    pthread_mutex_unlock(&w->lock);
    w->job(w->context, &problem);
    pthread_mutex_lock(&w->lock);
    w->problem = problem;
    w->seconds = seconds_now() - begin;
    w->job = NULL;
    pthread_cond_broadcast(&w->changed);
}

static void *run_jobs(void *context)
{
    worker *w = context;

    if (w->priority == WORKER_LOW)
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    pthread_mutex_lock(&w->lock);
    while (w->job != NULL || !w->closing) {
        if (w->job != NULL)
            run_job(w);
        else
            pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void free_worker(worker *w)
{
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

pons_status worker_open(worker_priority priority, const char *what, worker **out, pons_error *err)
{
    worker *w = calloc(1, sizeof *w);

    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %s", what);
    w->priority = priority;
    w->problem = (pons_error)PONS_ERROR_INIT;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (thread_start(&w->thread, run_jobs, w, what, err) != PONS_OK) {
        free_worker(w);
        return err->status;
    }
    *out = w;
    return PONS_OK;
}

void worker_close(worker *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    free_worker(w);
}

/* Locked. */
static pons_status take_problem(worker *w, pons_error *err)
{
    pons_error problem = w->problem;

    w->problem = (pons_error)PONS_ERROR_INIT;
    if (problem.status != PONS_OK)
        return pons_fail(err, problem.status, "%s", problem.text);
    return PONS_OK;
}

static void wait_idle(worker *w)
{
    while (w->job != NULL)
        pthread_cond_wait(&w->changed, &w->lock);
}

pons_status worker_start(worker *w, worker_job *job, void *context, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&w->lock);
    wait_idle(w);
    status = take_problem(w, err);
    if (status == PONS_OK) {
        w->job = job;
        w->context = context;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

pons_status worker_check(worker *w, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&w->lock);
    status = take_problem(w, err);
    pthread_mutex_unlock(&w->lock);
    return status;
}

pons_status worker_wait(worker *w, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&w->lock);
    wait_idle(w);
    status = take_problem(w, err);
    pthread_mutex_unlock(&w->lock);
    return status;
}

bool worker_busy(worker *w)
{
    bool busy;

    pthread_mutex_lock(&w->lock);
    busy = w->job != NULL;
    pthread_mutex_unlock(&w->lock);
    return busy;
}

double worker_seconds(worker *w)
{
    double seconds;

    pthread_mutex_lock(&w->lock);
    seconds = w->seconds;
    pthread_mutex_unlock(&w->lock);
    return seconds;
}
