/*
 * group_meet.c - before anything else the processes of a run learn whether all of them take part:
 * one that has been refused (its file, its libraries) says so here, and nobody waits for it.
 *
 * All tell rank 0, rank 0 tells all.
 */
#include <config.h>

#include "dist/group_parts.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

#define REFUSE_S 10.0 /* who takes no part waits for the others to come and to ask                */
#define CLOSE_S 5.0   /* and for them to have heard                                               */

/* PONS_OK: takes part; otherwise why not. */
typedef struct answer {
    int32_t status;
    char text[sizeof((pons_error *)0)->text];
} answer;

static answer answer_of(int rank, const pons_error *failure)
{
    answer a = { .status = PONS_OK };

    if (failure != NULL) {
        a.status = (int32_t)failure->status;
        snprintf(a.text, sizeof a.text, "rank %d failed (start): %.1900s", rank, failure->text);
    }
    return a;
}

static double left_until(double time)
{
    return fmax(time - seconds_now(), 0);
}

/* The first one that takes no part speaks for all. */
static pons_status collect(store *s, int size, double until, answer *total, pons_error *err)
{
    for (int rank = 1; rank < size; rank++) {
        char key[32];
        answer a;
        size_t got;

        snprintf(key, sizeof key, "here.%d", rank);
        if (store_get(s, key, left_until(until), &a, sizeof a, &got, err) != PONS_OK)
            return err->status;
        if (total->status == PONS_OK && a.status != PONS_OK)
            *total = a;
    }
    return store_set(s, "begin", total, sizeof *total, err);
}

static pons_status ask(store *s, int rank, double until, answer *total, pons_error *err)
{
    char key[32];
    size_t got;

    snprintf(key, sizeof key, "here.%d", rank);
    if (store_set(s, key, total, sizeof *total, err) != PONS_OK)
        return err->status;
    return store_get(s, "begin", left_until(until), total, sizeof *total, &got, err);
}

static pons_status meet(store *s, const dist_place *place, double until, const pons_error *failure,
                        pons_error *err)
{
    answer a = answer_of(place->rank, failure);

    if ((place->rank == 0 ? collect(s, place->size, until, &a, err)
                          : ask(s, place->rank, until, &a, err)) != PONS_OK)
        return err->status;
    return a.status == PONS_OK ? PONS_OK : pons_fail(err, (pons_status)a.status, "%s", a.text);
}

pons_status group_meet(store *s, const dist_place *place, double timeout_s, pons_error *err)
{
    return meet(s, place, seconds_now() + timeout_s, NULL, err);
}

void group_refuse(const dist_place *place, const pons_error *failure)
{
    pons_error alone = PONS_ERROR_INIT;
    const double until = seconds_now() + REFUSE_S;
    store *s;

    if (place->size < 2 || store_open(place, REFUSE_S, &s, &alone) != PONS_OK)
        return;
    meet(s, place, until, failure, &alone);
    store_close_within(s, CLOSE_S);
}
