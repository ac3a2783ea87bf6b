/*
 * watchdog.c - the thread of a watch, what this process says of itself, and its end.
 *
 * The checks of each round are in watchdog_rounds.c; the verdict on a failure is agreed upon in
 * watchdog_root_cause.c.
 */
#include "cluster/watchdog/watchdog_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread/thread.h"

#define GRACE_S 1.0           /* from a failure until a process that goes on is ended             */
#define GRACE_ALONE_S 5.0     /* the same where nobody waits for it and it is about to end        */

/* ---- the thread ------------------------------------------------------------------------------ */

bool watch_wait_over(watch *w, double wait_s)
{
    const struct timespec until = clock_at(seconds_now() + wait_s);
    bool over;

    pthread_mutex_lock(&w->lock);
    while (!w->over && !w->closing && wait_s > 0
           && pthread_cond_timedwait(&w->changed, &w->lock, &until) != ETIMEDOUT)
        continue;
    over = w->over || w->closing;
    pthread_mutex_unlock(&w->lock);
    return over;
}

static void call_last(watch *w)
{
    w->last(w->last_context, (pons_status)w->end.status);
    pthread_mutex_lock(&w->lock);
    w->in_last = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* The process has heard of the failure when it leaves or closes; otherwise it is ended here. */
static void end_process(watch *w)
{
    struct timespec until;
    bool heard;

    pthread_mutex_lock(&w->lock);
    until = clock_at(seconds_now() + w->grace_s);
    while (!w->leaving && !w->closing
           && pthread_cond_timedwait(&w->changed, &w->lock, &until) != ETIMEDOUT)
        continue;
    heard = w->leaving || w->closing;
    w->in_last = !heard && w->last != NULL;
    pthread_mutex_unlock(&w->lock);
    if (w->in_last)
        call_last(w);
    if (heard)
        return;
    board_end(w->seat, w->end.status, w->end.text);
    if (w->seat == NULL)
        fprintf(stderr, "error: %s\n", w->end.text);
    fflush(NULL);
    _exit(w->end.status);
}

static void *run(void *context)
{
    watch *w = context;

    watch_run(w);
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

static void watch_free(watch *w)
{
    board_leave(w->seat);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w->row);
    free(w);
}

static void start_rows(watch *w)
{
    for (int k = 0; k < w->settings.size; k++)
        w->row[k] = (beat_row){ .last = { .step = -1, .number = -1, .doing = "start" } };
    w->mine = w->row[0].last;
    w->grace_s = GRACE_S;
    w->before = seconds_now();
}

pons_status watch_open(const watch_settings *settings, watch **out, pons_error *err)
{
    watch *w = calloc(1, sizeof *w);

    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", settings->size);
    w->settings = *settings;
    w->seat = board_sit(getenv(BOARD_VARIABLE));
    pthread_mutex_init(&w->lock, NULL);
    thread_condition(&w->changed);
    w->row = calloc((size_t)settings->size, sizeof *w->row);
    if (w->row == NULL) {
        watch_free(w);
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", settings->size);
    }
    start_rows(w);
    if (thread_start(&w->thread, run, w, "the watch of the processes", err) != PONS_OK) {
        watch_free(w);
        return err->status;
    }
    *out = w;
    return PONS_OK;
}

void watch_close(watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    watch_free(w);
}

void watch_comm(watch *w, const pons_comm_operations *operations, void *comm)
{
    pthread_mutex_lock(&w->lock);
    w->operations = operations;
    w->comm = comm;
    if (comm != NULL && w->over && w->end.status != PONS_OK)
        operations->abort(comm);
    pthread_mutex_unlock(&w->lock);
}

void watch_before_end(watch *w, void (*last)(void *context, pons_status status), void *context)
{
    pthread_mutex_lock(&w->lock);
    while (w->in_last)
        pthread_cond_wait(&w->changed, &w->lock);
    w->last = last;
    w->last_context = context;
    pthread_mutex_unlock(&w->lock);
}

void watch_leave_alone(watch *w, const pons_error *failure)
{
    if (failure->status == PONS_OK || failure->status == PONS_INTERRUPTED) {
        watch_leave(w);
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->grace_s = GRACE_ALONE_S;
    pthread_mutex_unlock(&w->lock);
    watch_publish_common(w, failure);
}

/* ---- where this process is ------------------------------------------------------------------- */

static void put_word(char out[16], const char *text)
{
    memset(out, 0, 16);
    memcpy(out, text, strnlen(text, 15));
}

void watch_note(watch *w, int64_t step, const char *doing)
{
    pthread_mutex_lock(&w->lock);
    w->mine.progress++;
    w->mine.step = step;
    put_word(w->mine.doing, doing);
    pthread_mutex_unlock(&w->lock);
    board_note(w->seat, step, doing);
}

static void put_collective(watch *w, bool waiting, int64_t number, const char *kind, int64_t size)
{
    pthread_mutex_lock(&w->lock);
    w->mine.progress++;
    w->mine.number = number;
    w->mine.size = size;
    w->mine.waiting = waiting;
    put_word(w->mine.kind, kind);
    pthread_mutex_unlock(&w->lock);
}

void watch_start(watch *w, int64_t number, const char *kind, int64_t size)
{
    put_collective(w, false, number, kind, size);
    board_collective(w->seat, number, kind, size);
}

void watch_wait(watch *w, int64_t number, const char *kind, int64_t size)
{
    put_collective(w, true, number, kind, size);
}

void watch_done(watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->mine.progress++;
    w->mine.waiting = false;
    pthread_mutex_unlock(&w->lock);
}
