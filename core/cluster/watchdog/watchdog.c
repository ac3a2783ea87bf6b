/*
 * watchdog.c - the watchdog's thread, the state of this process, and the end of the process.
 *
 * watchdog_rounds.c has the checks of each round. watchdog_outcome.c agrees on the root cause.
 */
#include "cluster/watchdog/watchdog_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread/thread.h"

#define GRACE_S 1.0           /* from a failure until a running process is ended                  */
#define GRACE_ALONE_S 5.0     /* the same for a single process that is about to end               */

/* ---- the thread ------------------------------------------------------------------------------ */

bool watchdog_wait_over(watchdog *w, double wait_s)
{
    const struct timespec until = clock_timespec(seconds_now() + wait_s);
    bool over;

    pthread_mutex_lock(&w->lock);
    while (!w->over && !w->closing && wait_s > 0
           && pthread_cond_timedwait(&w->changed, &w->lock, &until) != ETIMEDOUT)
        continue;
    over = w->over || w->closing;
    pthread_mutex_unlock(&w->lock);
    return over;
}

static void call_exit_hook(watchdog *w)
{
    w->last(w->last_context, (pons_status)w->end.status);
    pthread_mutex_lock(&w->lock);
    w->in_exit_hook = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* End the process, unless it leaves or closes in time: then it knows of the failure. */
static void end_process(watchdog *w)
{
    struct timespec until;
    bool heard;

    pthread_mutex_lock(&w->lock);
    until = clock_timespec(seconds_now() + w->grace_s);
    while (!w->leaving && !w->closing
           && pthread_cond_timedwait(&w->changed, &w->lock, &until) != ETIMEDOUT)
        continue;
    heard = w->leaving || w->closing;
    w->in_exit_hook = !heard && w->last != NULL;
    pthread_mutex_unlock(&w->lock);
    if (w->in_exit_hook)
        call_exit_hook(w);
    if (heard)
        return;
    status_page_report(w->slot, w->end.status, w->end.text);
    if (w->slot == NULL)
        fprintf(stderr, "error: %s\n", w->end.text);
    fflush(NULL);
    _exit(w->end.status);
}

static void *run_thread(void *context)
{
    watchdog *w = context;

    watchdog_run(w);
    pthread_mutex_lock(&w->lock);
    if (!w->over || w->end.status == PONS_OK || w->closing || w->leaving) {
        pthread_mutex_unlock(&w->lock);
        return NULL;
    }
    pthread_mutex_unlock(&w->lock);
    if (w->settings.failed != NULL)
        w->settings.failed(w->settings.context, w->end.text);
    else
        end_process(w);
    return NULL;
}

/* ---- open and close -------------------------------------------------------------------------- */

static void watch_free(watchdog *w)
{
    status_page_detach(w->slot);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w->row);
    free(w);
}

static void start_rows(watchdog *w)
{
    for (int k = 0; k < w->settings.size; k++)
        w->row[k] = (heartbeat_row){ .last = { .step = -1, .number = -1, .doing = "start" } };
    w->mine = w->row[0].last;
    w->grace_s = GRACE_S;
    w->before = seconds_now();
}

pons_status watchdog_open(const watchdog_settings *settings, watchdog **out, pons_error *err)
{
    watchdog *w = calloc(1, sizeof *w);

    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", settings->size);
    w->settings = *settings;
    w->slot = status_page_attach(getenv(STATUS_PAGE_VARIABLE));
    pthread_mutex_init(&w->lock, NULL);
    thread_condition(&w->changed);
    w->row = calloc((size_t)settings->size, sizeof *w->row);
    if (w->row == NULL) {
        watch_free(w);
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", settings->size);
    }
    start_rows(w);
    if (thread_start(&w->thread, run_thread, w, "the watch of the processes", err) != PONS_OK) {
        watch_free(w);
        return err->status;
    }
    *out = w;
    return PONS_OK;
}

void watchdog_close(watchdog *w)
{
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    watch_free(w);
}

void watchdog_set_comm(watchdog *w, const pons_comm_operations *operations, void *comm)
{
    pthread_mutex_lock(&w->lock);
    w->operations = operations;
    w->comm = comm;
    if (comm != NULL && w->over && w->end.status != PONS_OK)
        operations->abort(comm);
    pthread_mutex_unlock(&w->lock);
}

void watchdog_set_exit_hook(watchdog *w, void (*last)(void *context, pons_status status),
                            void *context)
{
    pthread_mutex_lock(&w->lock);
    while (w->in_exit_hook)
        pthread_cond_wait(&w->changed, &w->lock);
    w->last = last;
    w->last_context = context;
    pthread_mutex_unlock(&w->lock);
}

void watchdog_announce_exit_alone(watchdog *w, const pons_error *failure)
{
    if (failure->status == PONS_OK || failure->status == PONS_INTERRUPTED) {
        watchdog_announce_exit(w);
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->grace_s = GRACE_ALONE_S;
    pthread_mutex_unlock(&w->lock);
    watchdog_report_shared(w, failure);
}

/* ---- state of this process ------------------------------------------------------------------- */

static void put_word(char out[16], const char *text)
{
    memset(out, 0, 16);
    memcpy(out, text, strnlen(text, 15));
}

void watchdog_note(watchdog *w, int64_t step, const char *doing)
{
    pthread_mutex_lock(&w->lock);
    w->mine.progress++;
    w->mine.step = step;
    put_word(w->mine.doing, doing);
    pthread_mutex_unlock(&w->lock);
    status_page_note(w->slot, step, doing);
}

static void put_collective(watchdog *w, bool waiting, int64_t number, const char *kind,
                           int64_t size)
{
    pthread_mutex_lock(&w->lock);
    w->mine.progress++;
    w->mine.number = number;
    w->mine.size = size;
    w->mine.waiting = waiting;
    put_word(w->mine.kind, kind);
    pthread_mutex_unlock(&w->lock);
}

void watchdog_started(watchdog *w, int64_t number, const char *kind, int64_t size)
{
    put_collective(w, false, number, kind, size);
    status_page_collective(w->slot, number, kind, size);
}

void watchdog_waiting(watchdog *w, int64_t number, const char *kind, int64_t size)
{
    put_collective(w, true, number, kind, size);
}

void watchdog_done(watchdog *w)
{
    pthread_mutex_lock(&w->lock);
    w->mine.progress++;
    w->mine.waiting = false;
    pthread_mutex_unlock(&w->lock);
}
