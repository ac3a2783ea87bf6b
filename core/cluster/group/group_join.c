/*
 * group_join.c - before anything else the processes of a run learn whether all of them take part:
 * one that has been refused (its file, its libraries) says so here, and nobody waits for it. So it
 * is where their comm plugins differ: these would wait for each other in words that the other does
 * not know. What else must be the same they compare once they are joined (group_agree.c).
 *
 * All tell rank 0, rank 0 tells all.
 */
#include "cluster/group/group_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define REFUSE_S 10.0 /* who takes no part waits for the others to come and to ask                */
#define CLOSE_S 5.0   /* and for them to have heard                                               */
#define VERDICT_S 1.5 /* others wait as much longer than rank 0 does                              */

/* PONS_OK: takes part, by this plugin; otherwise why not. */
typedef struct answer {
    int32_t status;
    char comm[PONS_NAME_SIZE], sha256[sizeof((plugin *)0)->sha256];
    char text[sizeof((pons_error *)0)->text];
} answer;

static answer answer_of(const plugin *comm)
{
    answer a = { .status = PONS_OK };

    snprintf(a.comm, sizeof a.comm, "%s", comm->descriptor->name);
    snprintf(a.sha256, sizeof a.sha256, "%s", comm->sha256);
    return a;
}

static answer refusal_of(int rank, const pons_error *failure)
{
    answer a = { .status = (int32_t)failure->status };

    snprintf(a.text, sizeof a.text, "rank %d failed (start): %.1900s", rank, failure->text);
    return a;
}

static double left_until(double time)
{
    return fmax(time - seconds_now(), 0);
}

/* Who takes part does so as rank 0, whose answer is 'total'. */
static void compare(answer *total, const answer *a, int rank)
{
    bool other = strcmp(total->comm, a->comm) != 0;

    if (!other && strcmp(total->sha256, a->sha256) == 0)
        return;
    total->status = PONS_CONFIG;
    snprintf(total->text, sizeof total->text, "the processes differ in %s: rank 0 has '%s', rank "
             "%d has '%s'", other ? "[distribute] backend" : "the plugin that joins processes",
             other ? total->comm : total->sha256, rank, other ? a->comm : a->sha256);
}

/* What a rank says under 'key'. One that is connected and says nothing in time takes no part. */
static pons_status hear(store *s, const char *key, int rank, double until, double wait_s, answer *a,
                        pons_error *err)
{
    pons_error late = PONS_ERROR_INIT;
    size_t got;

    if (store_get(s, key, left_until(until), a, sizeof *a, &got, &late) == PONS_OK)
        return PONS_OK;
    if (store_broken(s))
        return pons_fail(err, late.status, "%s", late.text);
    *a = (answer){ .status = PONS_COMMUNICATION };
    snprintf(a->text, sizeof a->text, "rank %d is connected, but has not said within %g s whether "
             "%s", rank, wait_s, rank == 0 ? "all take part" : "it takes part");
    return PONS_OK;
}

/* The first one that takes no part, or another one, speaks for all. */
static pons_status collect(store *s, int size, double wait_s, answer *total, pons_error *err)
{
    const double until = seconds_now() + wait_s;

    for (int rank = 1; rank < size; rank++) {
        char key[32];
        answer a;

        snprintf(key, sizeof key, "here.%d", rank);
        if (hear(s, key, rank, until, wait_s, &a, err) != PONS_OK)
            return err->status;
        if (total->status == PONS_OK && a.status != PONS_OK)
            *total = a;
        else if (total->status == PONS_OK)
            compare(total, &a, rank);
    }
    return store_set(s, "begin", total, sizeof *total, err);
}

/* Rank 0 may wait as long for the last one, and then says which one that was. */
static pons_status ask(store *s, int rank, double wait_s, answer *total, pons_error *err)
{
    char key[32];

    snprintf(key, sizeof key, "here.%d", rank);
    if (store_set(s, key, total, sizeof *total, err) != PONS_OK)
        return err->status;
    return hear(s, "begin", 0, seconds_now() + wait_s + VERDICT_S, wait_s, total, err);
}

static pons_status meet(store *s, const dist_place *place, double wait_s, answer a, pons_error *err)
{
    if ((place->rank == 0 ? collect(s, place->size, wait_s, &a, err)
                          : ask(s, place->rank, wait_s, &a, err)) != PONS_OK)
        return err->status;
    return a.status == PONS_OK ? PONS_OK : pons_fail(err, (pons_status)a.status, "%s", a.text);
}

pons_status group_meet(store *s, const group_settings *settings, pons_error *err)
{
    return meet(s, settings->place, settings->timeout_s, answer_of(settings->comm), err);
}

void group_refuse(const dist_place *place, const pons_error *failure)
{
    pons_error alone = PONS_ERROR_INIT;
    const double until = seconds_now() + REFUSE_S;
    store *s;

    if (place->size < 2 || store_open(place, REFUSE_S, &s, &alone) != PONS_OK)
        return;
    meet(s, place, left_until(until), refusal_of(place->rank, failure), &alone);
    store_close_within(s, CLOSE_S);
}
