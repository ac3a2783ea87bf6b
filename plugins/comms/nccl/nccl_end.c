/*
 * nccl_end.c - how a communicator ends: in order, or by an abort that may come from any thread at
 * any time and that must not be waited for, since ncclCommAbort itself is known to hang.
 *
 * A thread of the communicator waits for a request to abort. From the request on every collective
 * fails, whatever NCCL and the GPU do. If the abort has not ended when the communicator is closed,
 * thread and memory stay until the process ends.
 */
#include "comms/nccl/nccl_internal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define BUSY_S 0.3     /* the abort waits for a call of another thread                            */
#define ABORT_S 1.0    /* closing waits for the abort, and for the stream                         */
#define FINALIZE_S 5.0 /* closing waits for collectives that NCCL has begun                       */

void nccl_rest(int64_t round)
{
    const struct timespec nap = { 0, 50000 };

    if (round < 100)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

/* NCCL's last words may be several lines, or none where another process failed. */
pons_status nccl_result(ncclResult_t code, const char *what, pons_error *err)
{
    char last[512];

    if (code == ncclSuccess || code == ncclInProgress)
        return PONS_OK;
    snprintf(last, sizeof last, "%s", ncclGetLastError != NULL ? ncclGetLastError(NULL) : "");
    for (char *at = last; *at != '\0'; at++)
        if (*at == '\n')
            *at = at[1] == '\0' ? '\0' : ' ';
    return pons_fail(err, strstr(last, "out of memory") != NULL ? PONS_DEVICE : PONS_COMMUNICATION,
                     "%s failed: %s%s%s", what, ncclGetErrorString(code),
                     last[0] != '\0' ? ": " : "", last);
}

pons_status nccl_lock(nccl_comm *c, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&c->lock);
    status = nccl_driver_check(&c->driver, c->driver.push(c->context),
                               "the GPU's context cannot be used", err);
    if (status != PONS_OK)
        pthread_mutex_unlock(&c->lock);
    return status;
}

void nccl_unlock(nccl_comm *c)
{
    CUcontext ours;

    c->driver.pop(&ours);
    pthread_mutex_unlock(&c->lock);
}

ncclResult_t nccl_state(nccl_comm *c)
{
    ncclResult_t state = ncclSuccess, code = ncclCommGetAsyncError(c->handle, &state);

    return code != ncclSuccess ? code : state;
}

CUresult nccl_drain(nccl_comm *c, double wait_s)
{
    const double until = seconds_now() + wait_s;
    CUresult code = c->driver.event_record(c->base, c->stream);

    if (code != CUDA_SUCCESS)
        return code;
    for (int64_t round = 0;; round++) {
        code = c->driver.event_query(c->base);
        if (code != CUDA_ERROR_NOT_READY || seconds_now() >= until)
            return code;
        nccl_rest(round);
    }
}

/* ---- failure --------------------------------------------------------------------------------- */

void nccl_fail(nccl_comm *c, const pons_error *failure)
{
    nccl_end *e = &c->end;

    pthread_mutex_lock(&e->lock);
    if (e->failure.status == PONS_OK)
        e->failure = *failure;
    e->wanted = true;
    atomic_store(&c->failed, true);
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

pons_status nccl_failure(nccl_comm *c, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&c->end.lock);
    status = pons_fail(err, c->end.failure.status, "%s", c->end.failure.text);
    pthread_mutex_unlock(&c->end.lock);
    return status;
}

void nccl_abort(void *comm)
{
    static const pons_error aborted = { PONS_COMMUNICATION, "the communicator was aborted" };

    nccl_fail(comm, &aborted);
}

/* ---- the thread that aborts ------------------------------------------------------------------ */

/*
 * Wait until a call under way has returned. It returns at once, or it waits for the abort. Later
 * callers find 'failed' and make no call.
 */
static void let_calls_return(nccl_comm *c)
{
    const double until = seconds_now() + BUSY_S;
    const struct timespec nap = { 0, 1000000 };

    while (seconds_now() < until) {
        if (pthread_mutex_trylock(&c->lock) == 0) {
            pthread_mutex_unlock(&c->lock);
            return;
        }
        nanosleep(&nap, NULL);
    }
}

static void abort_now(nccl_comm *c)
{
    ncclComm_t handle;
    CUcontext ours;

    let_calls_return(c);
    handle = atomic_load(&c->handle);
    if (handle == NULL || c->driver.push(c->context) != CUDA_SUCCESS)
        return;
    ncclCommAbort(handle);
    c->driver.pop(&ours);
}

static void *wait_for_abort(void *context)
{
    nccl_comm *c = context;
    nccl_end *e = &c->end;

    pthread_mutex_lock(&e->lock);
    while (!e->wanted && !e->closing)
        pthread_cond_wait(&e->changed, &e->lock);
    if (e->wanted) {
        pthread_mutex_unlock(&e->lock);
        abort_now(c);
        pthread_mutex_lock(&e->lock);
        e->ended = true;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

pons_status nccl_end_open(nccl_comm *c, pons_error *err)
{
    pthread_condattr_t clock;
    int code;

    pthread_mutex_init(&c->end.lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&c->end.changed, &clock);
    pthread_condattr_destroy(&clock);
    code = pthread_create(&c->end.thread, NULL, wait_for_abort, c);
    if (code == 0)
        return PONS_OK;
    pthread_cond_destroy(&c->end.changed);
    pthread_mutex_destroy(&c->end.lock);
    return pons_fail(err, PONS_DEVICE, "out of memory for the thread of a communicator, or too "
                     "many threads: %s", strerror(code));
}

/* ---- close ----------------------------------------------------------------------------------- */

/* NCCL finishes what it has begun; one that does not is aborted. */
static void finalize(nccl_comm *c)
{
    const double until = seconds_now() + FINALIZE_S;
    pons_error err = PONS_ERROR_INIT;
    ncclResult_t state;

    if (nccl_lock(c, &err) != PONS_OK)
        return;
    state = ncclCommFinalize(c->handle);
    for (int64_t round = 0; state == ncclInProgress && seconds_now() < until
                            && !atomic_load(&c->failed); round++) {
        nccl_rest(round);
        state = nccl_state(c);
    }
    if (state == ncclSuccess && ncclCommDestroy(c->handle) == ncclSuccess)
        atomic_store(&c->handle, NULL);
    nccl_unlock(c);
    if (atomic_load(&c->handle) != NULL)
        nccl_abort(c);
}

/* True if the thread has ended or is about to. */
static bool thread_ends(nccl_end *e)
{
    const struct timespec until = clock_timespec(seconds_now() + ABORT_S);
    bool ends;

    pthread_mutex_lock(&e->lock);
    e->closing = true;
    pthread_cond_broadcast(&e->changed);
    while (e->wanted && !e->ended
           && pthread_cond_timedwait(&e->changed, &e->lock, &until) != ETIMEDOUT)
        continue;
    ends = !e->wanted || e->ended;
    pthread_mutex_unlock(&e->lock);
    return ends;
}

/* False: a GPU that failed or still works keeps the memory until the process ends. */
static bool free_memory(nccl_comm *c)
{
    pons_error err = PONS_ERROR_INIT;
    bool idle;

    if (nccl_lock(c, &err) != PONS_OK)
        return false;
    /* Work behind an aborted collective still runs, and uses this memory. */
    idle = c->base == NULL || nccl_drain(c, ABORT_S) == CUDA_SUCCESS;
    if (idle) {
        nccl_ops_free(c);
        if (c->base != NULL)
            c->driver.event_free(c->base);
        if (c->word != 0)
            c->driver.device_free(c->word);
    }
    nccl_unlock(c);
    return idle;
}

void nccl_close(void *comm)
{
    nccl_comm *c = comm;

    if (atomic_load(&c->handle) != NULL && !atomic_load(&c->failed))
        finalize(c);
    if (!thread_ends(&c->end)) {
        pthread_detach(c->end.thread);
        return;
    }
    pthread_join(c->end.thread, NULL);
    if (!free_memory(c))
        return;
    pthread_cond_destroy(&c->end.changed);
    pthread_mutex_destroy(&c->end.lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
