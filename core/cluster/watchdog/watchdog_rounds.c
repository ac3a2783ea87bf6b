/*
 * watchdog_rounds.c - beats to the store, and what follows from those of all.
 *
 * Keys: 'beat.RANK', and 'beats', rank 0's table, for the lines of a process that outlives rank 0.
 * A process that is alone has no store: it looks at itself.
 */
#include "cluster/watchdog/watchdog_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define GLANCE_S 0.1    /* rank 0's looks at the verdict and at lost connections                  */
#define ROUND_S 0.5     /* counted of a round of rank 0, ...                                      */
#define ASKING_S 1.0    /* ... and of one of another rank, at most                                */

enum { TABLE_EVERY = 10, TABLE_SMALL = 32 }; /* larger groups read the table every so many beats  */

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

/* ---- what this process says of itself -------------------------------------------------------- */

static beat look_at_self(watch *w)
{
    beat b;

    pthread_mutex_lock(&w->lock);
    w->mine.serial++;
    b = w->mine;
    pthread_mutex_unlock(&w->lock);
    beat_take(&w->row[w->settings.rank], &b, w->lived, 0, seconds_now());
    return b;
}

static bool send_beat(watch *w)
{
    pons_error lost = PONS_ERROR_INIT;
    const beat b = look_at_self(w);
    char key[32];

    if (w->settings.rank == 0)
        return true;
    snprintf(key, sizeof key, "beat.%d", w->settings.rank);
    return store_try_set(w->settings.store, key, &b, sizeof b, WATCH_ANSWER_S, &lost) == PONS_OK;
}

/* ---- rank 0's part --------------------------------------------------------------------------- */

static void collect_beats(watch *w)
{
    for (int k = 1; k < w->settings.size; k++) {
        pons_error late = PONS_ERROR_INIT;
        char key[32];
        beat b;
        size_t size;
        double age;

        snprintf(key, sizeof key, "beat.%d", k);
        if (store_try_look(w->settings.store, key, WATCH_ANSWER_S, &b, sizeof b, &size, &age, &late)
                == PONS_OK && size == sizeof b)
            beat_take(&w->row[k], &b, w->lived, age, seconds_now());
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
        all[k] = beat_hand_on(&w->row[k], seconds_now());
    store_set(w->settings.store, "beats", all, (size_t)count * sizeof *all, &ignored);
    free(all);
}

/* Rank 0 has the newest that the others have said; they are not asked, some could not answer. */
static void tell_all(watch *w, char *out, size_t room)
{
    look_at_self(w);
    if (w->settings.rank == 0)
        collect_beats(w);
    beats_tell(w->row, w->settings.size, seconds_now(), out, room);
}

static void accuse(watch *w, const char *line)
{
    verdict v = { .status = PONS_COMMUNICATION };
    size_t used;

    snprintf(v.text, sizeof v.text, "%s", line);
    used = strlen(v.text);
    if (w->settings.size > 1)
        tell_all(w, v.text + used, sizeof v.text - used);
    watch_decide(w, &v);
}

/* A rank that fails sets its verdict before it goes, so what it says comes first. */
static bool find_lost(watch *w)
{
    pons_error late = PONS_ERROR_INIT;
    char rank[16] = "", line[128];
    size_t size;

    if (store_get(w->settings.store, STORE_LOST, 0, rank, sizeof rank - 1, &size, &late) != PONS_OK)
        return false;
    if (watch_read_verdict(w, 0))
        return true;
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
    double age;

    if (all != NULL
        && store_try_look(w->settings.store, "beats", WATCH_ANSWER_S, all, room, &size, &age, &late)
               == PONS_OK)
        for (size_t k = 0; k < size / sizeof *all && k < (size_t)w->settings.size; k++)
            if ((int)k != w->settings.rank)
                beat_take(&w->row[k], &all[k], 0, age, seconds_now());
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
    tell_all(w, v.text + used, sizeof v.text - used);
    watch_finish(w, &v);
    return true;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void watch_all(watch *w)
{
    while (!watch_wait_over(w, 0)) {
        double next = seconds_now() + WATCH_BEAT_S;
        send_beat(w);
        collect_beats(w);
        publish_table(w);
        do
            if (watch_read_verdict(w, GLANCE_S) || find_lost(w) || judge(w))
                return;
        while (seconds_now() < next && !watch_wait_over(w, 0));
    }
}

/* Nobody else is there to be heard of. */
static void watch_alone(watch *w)
{
    while (!watch_wait_over(w, GLANCE_S)) {
        send_beat(w);
        if (judge(w))
            return;
    }
}

static void watch_first(watch *w)
{
    for (int64_t round = 0; !watch_wait_over(w, 0); round++) {
        bool answered = send_beat(w);

        if (answered && (w->settings.size <= TABLE_SMALL || round % TABLE_EVERY == 0))
            read_table(w);
        if (find_first_lost(w, answered) || (answered && watch_read_verdict(w, WATCH_BEAT_S)))
            return;
    }
}

void watch_run(watch *w)
{
    if (w->settings.size == 1)
        watch_alone(w);
    else if (w->settings.rank == 0)
        watch_all(w);
    else
        watch_first(w);
}
