/*
 * watchdog_rounds.c - one round of the watchdog: send a heartbeat, read those of others, check
 * them.
 *
 * Keys of the store: 'beat.RANK' has a rank's heartbeat. 'beats' has rank 0's table, with which
 * other ranks describe the run after a loss of rank 0. A process without others has no store and
 * checks itself.
 */
#include "cluster/watchdog/watchdog_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"

#define GLANCE_S 0.1    /* interval of rank 0's checks within a round                             */
#define ROUND_S 0.5     /* counted of a round of rank 0, at most                                  */
#define ASKING_S 1.0    /* counted of a round of another rank, at most                            */

enum { TABLE_EVERY = 10, TABLE_SMALL = 32 }; /* larger groups read the table in every tenth round */

/*
 * Count the time in which this thread was running. While the machine is suspended or far too busy,
 * the thread reads no heartbeats, so their absence means nothing. Each round counts at most as long
 * as it takes on a running machine.
 */
static void count_running_time(watchdog *w, double most)
{
    double time = seconds_now();

    w->running_s += fmin(time - w->before, most);
    w->before = time;
}

/* ---- this process ---------------------------------------------------------------------------- */

static heartbeat record_self(watchdog *w)
{
    heartbeat b;

    pthread_mutex_lock(&w->lock);
    w->mine.serial++;
    b = w->mine;
    pthread_mutex_unlock(&w->lock);
    heartbeat_record(&w->row[w->settings.rank], &b, w->running_s, 0, seconds_now());
    return b;
}

static bool send_beat(watchdog *w)
{
    pons_error lost = PONS_ERROR_INIT;
    const heartbeat b = record_self(w);
    char key[32];

    if (w->settings.rank == 0)
        return true;
    snprintf(key, sizeof key, "beat.%d", w->settings.rank);
    return store_try_set(w->settings.store, key, &b, sizeof b, WATCHDOG_ANSWER_S, &lost) == PONS_OK;
}

/* ---- rank 0 ---------------------------------------------------------------------------------- */

static void collect_beats(watchdog *w)
{
    for (int k = 1; k < w->settings.size; k++) {
        pons_error late = PONS_ERROR_INIT;
        char key[32];
        heartbeat b;
        size_t size;
        double age;

        snprintf(key, sizeof key, "beat.%d", k);
        if (store_try_peek(w->settings.store, key, WATCHDOG_ANSWER_S, &b, sizeof b, &size, &age,
                           &late)
                == PONS_OK && size == sizeof b)
            heartbeat_record(&w->row[k], &b, w->running_s, age, seconds_now());
    }
}

static void publish_table(watchdog *w)
{
    pons_error ignored = PONS_ERROR_INIT;
    int most = PONS_COMM_VALUE_MAX / (int)sizeof(heartbeat);
    int count = min_int(w->settings.size, most);
    heartbeat *all = malloc((size_t)count * sizeof *all);

    if (all == NULL)
        return;
    for (int k = 0; k < count; k++)
        all[k] = heartbeat_forward(&w->row[k], seconds_now());
    store_set(w->settings.store, "beats", all, (size_t)count * sizeof *all, &ignored);
    free(all);
}

/* Rank 0 reads the latest heartbeats. The ranks are not asked, as some could not answer. */
static void print_all_rows(watchdog *w, char *out, size_t room)
{
    record_self(w);
    if (w->settings.rank == 0)
        collect_beats(w);
    heartbeats_print(w->row, w->settings.size, seconds_now(), out, room);
}

static void publish_failure(watchdog *w, const char *line)
{
    run_outcome v = { .status = PONS_COMMUNICATION };
    size_t used;

    snprintf(v.text, sizeof v.text, "%s", line);
    used = strlen(v.text);
    if (w->settings.size > 1)
        print_all_rows(w, v.text + used, sizeof v.text - used);
    watchdog_publish_outcome(w, &v);
}

/* Detect a lost connection. A rank that fails publishes its failure first, and that one is used. */
static bool find_lost_rank(watchdog *w)
{
    pons_error late = PONS_ERROR_INIT;
    char rank[16] = "", line[128];
    size_t size;

    if (store_get(w->settings.store, STORE_LOST, 0, rank, sizeof rank - 1, &size, &late) != PONS_OK)
        return false;
    if (watchdog_read_outcome(w, 0))
        return true;
    snprintf(line, sizeof line, "rank %s has gone: its connection has ended", rank);
    publish_failure(w, line);
    return true;
}

static bool check_heartbeats(watchdog *w)
{
    char line[512];

    count_running_time(w, ROUND_S);
    w->row[0].heard = w->running_s; /* rank 0 is running */
    if (!heartbeats_check(w->row, w->settings.size, w->running_s, w->settings.timeout_s, line,
                          sizeof line))
        return false;
    publish_failure(w, line);
    return true;
}

/* ---- other ranks ----------------------------------------------------------------------------- */

static void read_table(watchdog *w)
{
    pons_error late = PONS_ERROR_INIT;
    size_t room = (size_t)w->settings.size * sizeof(heartbeat), size = 0;
    heartbeat *all = malloc(room);
    double age;

    if (all != NULL
        && store_try_peek(w->settings.store, "beats", WATCHDOG_ANSWER_S, all, room, &size, &age,
                          &late)
               == PONS_OK)
        for (size_t k = 0; k < size / sizeof *all && k < (size_t)w->settings.size; k++)
            if ((int)k != w->settings.rank)
                heartbeat_record(&w->row[k], &all[k], 0, age, seconds_now());
    free(all);
}

/* Detect the loss of rank 0. The store is lost with it, so the failure stays local. */
static bool find_lost_rank_0(watchdog *w, bool answered)
{
    run_outcome v = { .status = PONS_COMMUNICATION };
    double silence;
    size_t used;

    count_running_time(w, ASKING_S);
    silence = w->running_s - w->answered;
    if (answered)
        w->answered = w->running_s;
    if (answered || (!store_broken(w->settings.store) && silence <= w->settings.timeout_s))
        return false;
    if (store_broken(w->settings.store))
        snprintf(v.text, sizeof v.text, "rank 0 has gone: its connection has ended");
    else
        snprintf(v.text, sizeof v.text, "rank 0 has stopped: its store has not answered for %.1f s",
                 silence);
    store_mark_dead(w->settings.store);
    used = strlen(v.text);
    print_all_rows(w, v.text + used, sizeof v.text - used);
    watchdog_set_outcome(w, &v);
    return true;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void run_on_rank_0(watchdog *w)
{
    while (!watchdog_wait_over(w, 0)) {
        double next = seconds_now() + WATCHDOG_HEARTBEAT_S;
        send_beat(w);
        collect_beats(w);
        publish_table(w);
        do
            if (watchdog_read_outcome(w, GLANCE_S) || find_lost_rank(w) || check_heartbeats(w))
                return;
        while (seconds_now() < next && !watchdog_wait_over(w, 0));
    }
}

/* A process without others checks itself. */
static void run_alone(watchdog *w)
{
    while (!watchdog_wait_over(w, GLANCE_S)) {
        send_beat(w);
        if (check_heartbeats(w))
            return;
    }
}

static void run_on_other_rank(watchdog *w)
{
    for (int64_t round = 0; !watchdog_wait_over(w, 0); round++) {
        bool answered = send_beat(w);

        if (answered && (w->settings.size <= TABLE_SMALL || round % TABLE_EVERY == 0))
            read_table(w);
        if (find_lost_rank_0(w, answered) || (answered
                                              && watchdog_read_outcome(w, WATCHDOG_HEARTBEAT_S)))
            return;
    }
}

void watchdog_run(watchdog *w)
{
    if (w->settings.size == 1)
        run_alone(w);
    else if (w->settings.rank == 0)
        run_on_rank_0(w);
    else
        run_on_other_rank(w);
}
