/*
 * watchdog_outcome.c - agree on the outcome of the run: the root cause of a failure, or a normal
 * end. It is the value of the key 'verdict' in the store. A process without others keeps it itself.
 */
#include "cluster/watchdog/watchdog_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* ---- the outcome ----------------------------------------------------------------------------- */

/* The first outcome is kept. A failure aborts the communicator. */
void watchdog_set_outcome(watchdog *w, const run_outcome *v)
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

/* Confirm the failure to rank 0, which keeps the store until then. */
static void acknowledge_failure(watchdog *w)
{
    pons_error late = PONS_ERROR_INIT;
    char key[32];

    snprintf(key, sizeof key, "heard.%d", w->settings.rank);
    store_try_set(w->settings.store, key, "", 0, WATCHDOG_ANSWER_S, &late);
}

bool watchdog_read_outcome(watchdog *w, double wait_s)
{
    pons_error late = PONS_ERROR_INIT;
    run_outcome v;
    size_t size;

    if (store_try_get(w->settings.store, "verdict", wait_s, WATCHDOG_ANSWER_S, &v, sizeof v, &size,
                      &late)
        != PONS_OK || size != sizeof v)
        return false;
    v.text[sizeof v.text - 1] = '\0';
    watchdog_set_outcome(w, &v);
    if (w->settings.rank > 0 && v.status != PONS_OK)
        acknowledge_failure(w);
    return true;
}

void watchdog_wait_acknowledged(watchdog *w, double wait_s)
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

/* The store keeps the first outcome. Without the store, each process uses its own. */
void watchdog_publish_outcome(watchdog *w, const run_outcome *v)
{
    pons_error lost = PONS_ERROR_INIT;

    if (w->settings.store == NULL
        || store_set_first(w->settings.store, "verdict", v, sizeof *v, &lost) != PONS_OK
        || !watchdog_read_outcome(w, 0))
        watchdog_set_outcome(w, v);
}

/* ---- failure and normal end ------------------------------------------------------------------ */

pons_status watchdog_cause(watchdog *w, double wait_s, pons_error *err)
{
    const struct timespec until = clock_timespec(seconds_now() + wait_s);
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

void watchdog_report_failure(watchdog *w, pons_error *err)
{
    run_outcome v = { .status = (int32_t)err->status };

    if (err->status != PONS_COMMUNICATION) /* that may be a consequence of another rank's failure */
        status_page_report(w->slot, err->status, err->text);
    pthread_mutex_lock(&w->lock);
    if (w->mine.step >= 0)
        snprintf(v.text, sizeof v.text, "rank %d failed at step %lld (%s): %.1900s",
                 w->settings.rank, (long long)w->mine.step, w->mine.doing, err->text);
    else
        snprintf(v.text, sizeof v.text, "rank %d failed (%s): %.1900s", w->settings.rank,
                 w->mine.doing, err->text);
    pthread_mutex_unlock(&w->lock);
    watchdog_publish_outcome(w, &v);
    *err = (pons_error)PONS_ERROR_INIT;
    watchdog_cause(w, 0, err);
}

void watchdog_report_shared(watchdog *w, const pons_error *err)
{
    run_outcome v = { .status = (int32_t)err->status };

    memcpy(v.text, err->text, sizeof v.text);
    watchdog_publish_outcome(w, &v);
}

void watchdog_announce_exit(watchdog *w)
{
    pthread_mutex_lock(&w->lock);
    w->leaving = true;
    w->mine.left = true;
    w->mine.progress++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Wait for a key while nothing has failed. */
static bool await_key(watchdog *w, const char *key, double until)
{
    size_t size;

    while (!watchdog_wait_over(w, 0) && seconds_now() < until) {
        pons_error late = PONS_ERROR_INIT;
        if (store_get(w->settings.store, key, WATCHDOG_HEARTBEAT_S, NULL, 0, &size,
                      &late) == PONS_OK)
            return true;
        if (store_broken(w->settings.store))
            return false;
    }
    return false;
}

/* Rank 0 waits until all have left and then publishes the normal end; the others wait for that. */
void watchdog_end(watchdog *w)
{
    static const run_outcome in_order = { PONS_OK, "" };
    const double until = seconds_now() + w->settings.timeout_s;
    const struct timespec last = clock_timespec(until);
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
        watchdog_publish_outcome(w, &in_order);
    pthread_mutex_lock(&w->lock);
    while (!w->over && all && lost.status == PONS_OK
           && pthread_cond_timedwait(&w->changed, &w->lock, &last) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&w->lock);
}
