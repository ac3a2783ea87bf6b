/*
 * watchdog_root_cause.c - the first cause of a failure, or the end of the run in order: one value
 * that all find in the store under 'verdict'. Who is alone keeps it.
 */
#include "cluster/watchdog/watchdog_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* ---- the verdict ----------------------------------------------------------------------------- */

/* The first one is kept; from then on nothing of the communicator goes on. */
void watch_finish(watch *w, const verdict *v)
{
    pthread_mutex_lock(&w->lock);
    if (!w->over) {
        w->over = true;
        w->end = *v;
        if (v->status != PONS_OK && w->comm != NULL)
            w->operations->abort(w->comm);
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
}

/* Rank 0 keeps the store until then. */
static void tell_heard(watch *w)
{
    pons_error late = PONS_ERROR_INIT;
    char key[32];

    snprintf(key, sizeof key, "heard.%d", w->settings.rank);
    store_try_set(w->settings.store, key, "", 0, WATCH_ANSWER_S, &late);
}

bool watch_read_verdict(watch *w, double wait_s)
{
    pons_error late = PONS_ERROR_INIT;
    verdict v;
    size_t size;

    if (store_try_get(w->settings.store, "verdict", wait_s, WATCH_ANSWER_S, &v, sizeof v, &size,
                      &late)
        != PONS_OK || size != sizeof v)
        return false;
    v.text[sizeof v.text - 1] = '\0';
    watch_finish(w, &v);
    if (w->settings.rank > 0 && v.status != PONS_OK)
        tell_heard(w);
    return true;
}

void watch_wait_heard(watch *w, double wait_s)
{
    const double until = seconds_now() + wait_s;

    for (int k = 1; w->settings.rank == 0 && k < w->settings.size; k++) {
        pons_error late = PONS_ERROR_INIT;
        char key[32];
        size_t size;

        snprintf(key, sizeof key, "heard.%d", k);
        if (store_get(w->settings.store, key, fmax(until - seconds_now(), 0), NULL, 0, &size,
                      &late) != PONS_OK)
            return;
    }
}

/* Whose verdict counts is the store's to say; without it everyone has its own. */
void watch_decide(watch *w, const verdict *v)
{
    pons_error lost = PONS_ERROR_INIT;

    if (w->settings.store == NULL
        || store_set_first(w->settings.store, "verdict", v, sizeof *v, &lost) != PONS_OK
        || !watch_read_verdict(w, 0))
        watch_finish(w, v);
}

/* ---- how it ends ----------------------------------------------------------------------------- */

pons_status watch_cause(watch *w, double wait_s, pons_error *err)
{
    const struct timespec until = clock_at(seconds_now() + wait_s);
    pons_status status = PONS_OK;

    pthread_mutex_lock(&w->lock);
    while (!w->over && wait_s > 0
           && pthread_cond_timedwait(&w->changed, &w->lock, &until) != ETIMEDOUT)
        continue;
    if (w->over && w->end.status != PONS_OK)
        status = pons_fail(err, (pons_status)w->end.status, "%s", w->end.text);
    pthread_mutex_unlock(&w->lock);
    return status;
}

void watch_publish(watch *w, pons_error *err)
{
    verdict v = { .status = (int32_t)err->status };

    if (err->status != PONS_COMMUNICATION) /* that may be somebody else's failure */
        board_end(w->seat, err->status, err->text);
    pthread_mutex_lock(&w->lock);
    if (w->mine.step >= 0)
        snprintf(v.text, sizeof v.text, "rank %d failed at step %lld (%s): %.1900s",
                 w->settings.rank, (long long)w->mine.step, w->mine.doing, err->text);
    else
        snprintf(v.text, sizeof v.text, "rank %d failed (%s): %.1900s", w->settings.rank,
                 w->mine.doing, err->text);
    pthread_mutex_unlock(&w->lock);
    watch_decide(w, &v);
    *err = (pons_error)PONS_ERROR_INIT;
    watch_cause(w, 0, err);
}

void watch_publish_common(watch *w, const pons_error *err)
{
    verdict v = { .status = (int32_t)err->status };

    memcpy(v.text, err->text, sizeof v.text);
    watch_decide(w, &v);
}

void watch_leave(watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->leaving = true;
    w->mine.left = true;
    w->mine.progress++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Waits for a key as long as nothing has failed. */
static bool await_key(watch *w, const char *key, double until)
{
    size_t size;

    while (!watch_wait_over(w, 0) && seconds_now() < until) {
        pons_error late = PONS_ERROR_INIT;
        if (store_get(w->settings.store, key, WATCH_BEAT_S, NULL, 0, &size, &late) == PONS_OK)
            return true;
        if (store_broken(w->settings.store))
            return false;
    }
    return false;
}

/* Rank 0 hears from all that they have left and says so; they wait for that. */
void watch_end(watch *w)
{
    static const verdict in_order = { PONS_OK, "" };
    const double until = seconds_now() + w->settings.timeout_s;
    const struct timespec last = clock_at(until);
    pons_error lost = PONS_ERROR_INIT;
    bool all = true;
    char key[32];

    snprintf(key, sizeof key, "left.%d", w->settings.rank);
    store_set(w->settings.store, key, "", 0, &lost);
    for (int k = 1; w->settings.rank == 0 && k < w->settings.size && all; k++) {
        snprintf(key, sizeof key, "left.%d", k);
        all = await_key(w, key, until);
    }
    if (w->settings.rank == 0 && all)
        watch_decide(w, &in_order);
    pthread_mutex_lock(&w->lock);
    while (!w->over && all && lost.status == PONS_OK
           && pthread_cond_timedwait(&w->changed, &w->lock, &last) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&w->lock);
}
