/*
 * group_join.c - the handshake before the processes join: each says whether it takes part and with
 * which comm plugin.
 *
 * A process that was refused, by its file or its libraries, says so here, and the others do not
 * wait for it. Different comm plugins are refused here, too, because they would wait for each
 * other's unknown messages. Other facts are compared after the join (group_agree.c).
 *
 * Every rank sends its answer to rank 0 ('here.RANK'). Rank 0 sends the result to all ('begin').
 */
#include "cluster/group/group_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define REFUSE_S 10.0 /* wait of a refused process for the others                                 */
#define CLOSE_S 5.0   /* wait until they have read the reason                                     */
#define VERDICT_S 1.5 /* extra wait of other ranks for rank 0's result                            */

/* PONS_OK: takes part with this plugin; else the reason. */
typedef struct join_answer {
    int32_t status;
    char comm[PONS_NAME_SIZE], sha256[sizeof((plugin *)0)->sha256];
    char text[sizeof((pons_error *)0)->text];
} join_answer;

static join_answer answer_of(const plugin *comm)
{
    join_answer a = { .status = PONS_OK };

    snprintf(a.comm, sizeof a.comm, "%s", comm->descriptor->name);
    snprintf(a.sha256, sizeof a.sha256, "%s", comm->sha256);
    return a;
}

static join_answer refusal_of(int rank, const pons_error *failure)
{
    join_answer a = { .status = (int32_t)failure->status };

    snprintf(a.text, sizeof a.text, "rank %d failed (start): %.1900s", rank, failure->text);
    return a;
}

static double left_until(double time)
{
    return fmax(time - seconds_now(), 0);
}

/* Compare a rank's comm plugin with that of rank 0 in 'total'. */
static void compare_plugins(join_answer *total, const join_answer *a, int rank)
{
    bool other = strcmp(total->comm, a->comm) != 0;

    if (!other && strcmp(total->sha256, a->sha256) == 0)
        return;
    total->status = PONS_CONFIG;
    snprintf(total->text, sizeof total->text, "the processes differ in %s: rank 0 has '%s', rank "
             "%d has '%s'", other ? "[distribute] backend" : "the plugin that joins processes",
             other ? total->comm : total->sha256, rank, other ? a->comm : a->sha256);
}

/* Read an answer. A rank that is connected but silent takes no part. */
static pons_status read_answer(store *s, const char *key, int rank, double until, double wait_s,
                               join_answer *a, pons_error *err)
{
    pons_error late = PONS_ERROR_INIT;
    size_t got;

    if (store_get(s, key, left_until(until), a, sizeof *a, &got, &late) == PONS_OK)
        return PONS_OK;
    if (store_broken(s))
        return pons_fail(err, late.status, "%s", late.text);
    *a = (join_answer){ .status = PONS_COMMUNICATION };
    snprintf(a->text, sizeof a->text, "rank %d is connected, but has not said within %g s whether "
             "%s", rank, wait_s, rank == 0 ? "all take part" : "it takes part");
    return PONS_OK;
}

/* On rank 0: read all answers and publish the result. The first refusal or difference counts. */
static pons_status collect_answers(store *s, int size, double wait_s, join_answer *total,
                                   pons_error *err)
{
    const double until = seconds_now() + wait_s;

    for (int rank = 1; rank < size; rank++) {
        char key[32];
        join_answer a;

        snprintf(key, sizeof key, "here.%d", rank);
        if (read_answer(s, key, rank, until, wait_s, &a, err) != PONS_OK)
            return err->status;
        if (total->status == PONS_OK && a.status != PONS_OK)
            *total = a;
        else if (total->status == PONS_OK)
            compare_plugins(total, &a, rank);
    }
    return store_set(s, "begin", total, sizeof *total, err);
}

/*
 * On another rank: send the answer and read the result. Rank 0 may wait for the last rank as long.
 */
static pons_status send_answer(store *s, int rank, double wait_s, join_answer *total,
                               pons_error *err)
{
    char key[32];

    snprintf(key, sizeof key, "here.%d", rank);
    if (store_set(s, key, total, sizeof *total, err) != PONS_OK)
        return err->status;
    return read_answer(s, "begin", 0, seconds_now() + wait_s + VERDICT_S, wait_s, total, err);
}

static pons_status exchange_answers(store *s, const rank_info *place, double wait_s, join_answer a,
                                    pons_error *err)
{
    if ((place->rank == 0 ? collect_answers(s, place->size, wait_s, &a, err)
                          : send_answer(s, place->rank, wait_s, &a, err)) != PONS_OK)
        return err->status;
    return a.status == PONS_OK ? PONS_OK : pons_fail(err, (pons_status)a.status, "%s", a.text);
}

pons_status group_join(store *s, const group_settings *settings, pons_error *err)
{
    return exchange_answers(s, settings->place, settings->timeout_s, answer_of(settings->comm),
                            err);
}

void group_refuse(const rank_info *place, const pons_error *failure)
{
    pons_error alone = PONS_ERROR_INIT;
    const double until = seconds_now() + REFUSE_S;
    store *s;

    if (place->size < 2 || store_open(place, REFUSE_S, &s, &alone) != PONS_OK)
        return;
    exchange_answers(s, place, left_until(until), refusal_of(place->rank, failure), &alone);
    store_close(s, CLOSE_S);
}
