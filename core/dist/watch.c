/*
 * watch.c - beats to the store and verdicts from it.
 *
 * Keys: 'beat.RANK', 'beats' (rank 0's table, for the lines of a process that outlives rank 0) and
 * 'verdict', the first cause or, with PONS_OK, the end of the run in order.
 */
#include <config.h>

#include "dist/watch.h"

#include "base/clock.h"
#include "base/thread.h"
#include "dist/beat.h"
#include "dist/board.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BEAT_S 0.5
#define GLANCE_S 0.1    /* rank 0's looks at the verdict and at lost connections                  */
#define ROUND_S 0.5     /* counted of a round of rank 0, ...                                      */
#define ASKING_S 1.0    /* ... and of one of another rank, at most                                */
#define ANSWER_S 0.7    /* until a question to rank 0 is asked again                              */
#define GRACE_S 1.0     /* from a failure until a process that goes on is ended                   */

enum { TABLE_EVERY = 10, TABLE_SMALL = 32 }; /* larger groups read the table every so many beats  */

typedef struct verdict {
    int32_t status;
    char text[sizeof((pons_error *)0)->text];
} verdict;

struct watch {
    watch_settings settings;
    board_seat *seat;
    pthread_t thread;
    pthread_mutex_t lock;     /* of what follows                                                  */
    pthread_cond_t changed;
    beat mine;
    bool over, leaving, closing; /* 'over': 'end' is there                                        */
    verdict end;
    const pons_comm_operations *operations;
    void *comm;
    void (*last)(void *context, pons_status status);
    void *last_context;
    bool in_last;             /* it is running                                                    */
    /* Of the thread alone. */
    beat_row *row;            /* by rank; on others than rank 0 what it has written               */
    double before, lived;     /* end of the round before; what has been counted so far            */
    double answered;          /* when the store last answered                                     */
};

static struct timespec clock_at(double time)
{
    return (struct timespec){ .tv_sec = (time_t)time,
                              .tv_nsec = (long)((time - floor(time)) * 1e9) };
}

/*
 * Who could not listen has heard nobody: where this thread does not run, as in a machine that is
 * suspended, stopped or far too busy, the others' silence says nothing about them. So time counts
 * by rounds, and a round no longer than it takes on a machine that runs.
 */
static void count_round(watch *w, double most)
{
    double time = seconds_now();

    w->lived += fmin(time - w->before, most);
    w->before = time;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/* The first one is kept; from then on nothing of the communicator goes on. */
static void finish(watch *w, const verdict *v)
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

static bool read_verdict(watch *w, double wait_s)
{
    pons_error late = PONS_ERROR_INIT;
    verdict v;
    size_t size;

    if (store_try_get(w->settings.store, "verdict", wait_s, ANSWER_S, &v, sizeof v, &size, &late)
        != PONS_OK || size != sizeof v)
        return false;
    v.text[sizeof v.text - 1] = '\0';
    finish(w, &v);
    return true;
}

/* Whose verdict counts is the store's to say; without it everyone has its own. */
static void publish(watch *w, const verdict *v)
{
    pons_error lost = PONS_ERROR_INIT;

    if (store_set_first(w->settings.store, "verdict", v, sizeof *v, &lost) != PONS_OK
        || !read_verdict(w, 0))
        finish(w, v);
}

/* ---- what this process says of itself -------------------------------------------------------- */

static bool send_beat(watch *w)
{
    pons_error lost = PONS_ERROR_INIT;
    char key[32];
    beat b;

    pthread_mutex_lock(&w->lock);
    w->mine.serial++;
    b = w->mine;
    pthread_mutex_unlock(&w->lock);
    beat_take(&w->row[w->settings.rank], &b, w->lived);
    if (w->settings.rank == 0)
        return true;
    snprintf(key, sizeof key, "beat.%d", w->settings.rank);
    return store_try_set(w->settings.store, key, &b, sizeof b, ANSWER_S, &lost) == PONS_OK;
}

/* ---- rank 0's part --------------------------------------------------------------------------- */

static void collect_beats(watch *w)
{
    for (int k = 1; k < w->settings.size; k++) {
        pons_error late = PONS_ERROR_INIT;
        char key[32];
        beat b;
        size_t size;

        snprintf(key, sizeof key, "beat.%d", k);
        if (store_get(w->settings.store, key, 0, &b, sizeof b, &size, &late) == PONS_OK
            && size == sizeof b)
            beat_take(&w->row[k], &b, w->lived);
    }
}

static void publish_table(watch *w)
{
    pons_error ignored = PONS_ERROR_INIT;
    int most = PONS_COMM_VALUE_MAX / (int)sizeof(beat);
    int count = w->settings.size < most ? w->settings.size : most;
    beat *all = malloc((size_t)count * sizeof *all);

    if (all == NULL)
        return;
    for (int k = 0; k < count; k++)
        all[k] = w->row[k].last;
    store_set(w->settings.store, "beats", all, (size_t)count * sizeof *all, &ignored);
    free(all);
}

static void accuse(watch *w, const char *line)
{
    verdict v = { .status = PONS_COMMUNICATION };
    size_t used;

    send_beat(w);
    snprintf(v.text, sizeof v.text, "%s", line);
    used = strlen(v.text);
    beats_tell(w->row, w->settings.size, v.text + used, sizeof v.text - used);
    publish(w, &v);
}

/* A rank that fails sets its verdict before it goes, so what it says comes first. */
static bool find_lost(watch *w)
{
    pons_error late = PONS_ERROR_INIT;
    char rank[16] = "", line[128];
    size_t size;

    if (store_get(w->settings.store, STORE_LOST, 0, rank, sizeof rank - 1, &size, &late) != PONS_OK)
        return false;
    if (read_verdict(w, 0))
        return true;
    collect_beats(w);
    snprintf(line, sizeof line, "rank %s has gone: its connection has ended", rank);
    accuse(w, line);
    return true;
}

static bool judge(watch *w)
{
    char line[512];

    count_round(w, ROUND_S);
    w->row[0].heard = w->lived; /* this is rank 0 */
    if (!beats_judge(w->row, w->settings.size, w->lived, w->settings.timeout_s, line, sizeof line))
        return false;
    accuse(w, line);
    return true;
}

/* ---- the other ranks' part ------------------------------------------------------------------- */

static void read_table(watch *w)
{
    pons_error late = PONS_ERROR_INIT;
    size_t room = (size_t)w->settings.size * sizeof(beat), size = 0;
    beat *all = malloc(room);

    if (all != NULL
        && store_try_get(w->settings.store, "beats", 0, ANSWER_S, all, room, &size, &late)
               == PONS_OK)
        for (size_t k = 0; k < size / sizeof *all && k < (size_t)w->settings.size; k++)
            if ((int)k != w->settings.rank)
                beat_take(&w->row[k], &all[k], 0);
    free(all);
}

/* Rank 0 keeps the store: without it there is nobody to tell. */
static bool find_first_lost(watch *w, bool answered)
{
    verdict v = { .status = PONS_COMMUNICATION };
    double silence;
    size_t used;

    count_round(w, ASKING_S);
    silence = w->lived - w->answered;
    if (answered)
        w->answered = w->lived;
    if (answered || (!store_broken(w->settings.store) && silence <= w->settings.timeout_s))
        return false;
    if (store_broken(w->settings.store))
        snprintf(v.text, sizeof v.text, "rank 0 has gone: its connection has ended");
    else
        snprintf(v.text, sizeof v.text, "rank 0 has stopped: its store has not answered for %.1f s",
                 silence);
    store_give_up(w->settings.store);
    used = strlen(v.text);
    beats_tell(w->row, w->settings.size, v.text + used, sizeof v.text - used);
    finish(w, &v);
    return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool is_over(watch *w)
{
    bool over;

    pthread_mutex_lock(&w->lock);
    over = w->over || w->closing;
    pthread_mutex_unlock(&w->lock);
    return over;
}

static void watch_all(watch *w)
{
    while (!is_over(w)) {
        double next = seconds_now() + BEAT_S;
        send_beat(w);
        collect_beats(w);
        publish_table(w);
        do
            if (read_verdict(w, GLANCE_S) || find_lost(w) || judge(w))
                return;
        while (seconds_now() < next && !is_over(w));
    }
}

static void watch_first(watch *w)
{
    for (int64_t round = 0; !is_over(w); round++) {
        bool answered = send_beat(w);

        if (answered && (w->settings.size <= TABLE_SMALL || round % TABLE_EVERY == 0))
            read_table(w);
        if (find_first_lost(w, answered) || (answered && read_verdict(w, BEAT_S)))
            return;
    }
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
    const struct timespec until = clock_at(seconds_now() + GRACE_S);
    bool heard;

    pthread_mutex_lock(&w->lock);
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

    if (w->settings.rank == 0)
        watch_all(w);
    else
        watch_first(w);
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
    w->before = seconds_now();
}

pons_status watch_open(const watch_settings *settings, watch **out, pons_error *err)
{
    watch *w = calloc(1, sizeof *w);
    pthread_condattr_t clock;

    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", settings->size);
    w->settings = *settings;
    w->seat = board_sit(getenv(BOARD_VARIABLE));
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &clock);
    pthread_condattr_destroy(&clock);
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
    publish(w, &v);
    *err = (pons_error)PONS_ERROR_INIT;
    watch_cause(w, 0, err);
}

void watch_publish_common(watch *w, const pons_error *err)
{
    verdict v = { .status = (int32_t)err->status };

    memcpy(v.text, err->text, sizeof v.text);
    publish(w, &v);
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

    while (!is_over(w) && seconds_now() < until) {
        pons_error late = PONS_ERROR_INIT;
        if (store_get(w->settings.store, key, BEAT_S, NULL, 0, &size, &late) == PONS_OK)
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
        publish(w, &in_order);
    pthread_mutex_lock(&w->lock);
    while (!w->over && all && lost.status == PONS_OK
           && pthread_cond_timedwait(&w->changed, &w->lock, &last) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&w->lock);
}
