/*
 * launch_failure.c - which rank failed first, and the one line that says how.
 */
#include "cluster/launch/launch_internal.h"

#include <string.h>

#include "base/system/signal_name.h"
#include "config/memory_hints.h"

/* ---- who ------------------------------------------------------------------------------------- */

/*
 * That others are gone is seen by all that are left, sometimes before the launcher sees that they
 * went: whoever ended for a reason of its own comes first.
 */
static bool lost_others(const launched *r)
{
    return r->signal == 0 && r->code == PONS_COMMUNICATION;
}

const launched *crowd_cause(const crowd *c)
{
    const launched *first = NULL;

    for (int i = 0; i < c->count; i++) {
        const launched *r = &c->rank[i];
        if (r->outcome != RANK_FAILED)
            continue;
        if (first == NULL || (lost_others(first) && !lost_others(r))
            || (lost_others(first) == lost_others(r) && r->when < first->when))
            first = r;
    }
    return first;
}

/* ---- what ------------------------------------------------------------------------------------ */

/* A younger note is told without its age. */
static const double OLD_NOTE_S = 1;

/*
 * " in step 12 (validation), last collective 40: all_reduce of 4096 bytes"; "" before all that. An
 * old note ends with its age: ", noted 7.5 s before".
 */
static void tell_position(const board_entry *e, double end, char *out, size_t size)
{
    size_t used = 0;

    *out = '\0';
    if (e->step >= 0)
        used += (size_t)snprintf(out, size, " in step %lld", (long long)e->step);
    if (e->doing[0] != '\0' && used < size)
        used += (size_t)snprintf(out + used, size - used, " (%s)", e->doing);
    if (e->collective >= 0 && used < size)
        used += (size_t)snprintf(out + used, size - used,
                                 ", last collective %lld: %s of %lld bytes",
                                 (long long)e->collective, e->kind, (long long)e->size);
    if (e->noted > 0 && end - e->noted >= OLD_NOTE_S && used < size)
        snprintf(out + used, size - used, ", noted %.1f s before", end - e->noted);
}

/* The same line from every rank, as for a key that the file must not have, is nobody's alone. */
static bool all_say(const crowd *c, const char *text)
{
    for (int i = 0; i < c->count; i++) {
        board_entry e;
        board_read(c->board, i, &e);
        if (!e.ended || strcmp(e.text, text) != 0)
            return false;
    }
    return true;
}

/* What a rank says of itself by its name, as without a launcher: here the name is there already. */
static const char *without_name(const char *text, int rank)
{
    char name[32];
    size_t size = (size_t)snprintf(name, sizeof name, "rank %d: ", rank);

    return strncmp(text, name, size) == 0 ? text + size : text;
}

static bool is_failure_told(const board_entry *e, const launched *r)
{
    return e->ended && r->signal == 0 && e->status == r->code && e->text[0] != '\0';
}

/*
 * What the C library ends a process with that it cannot give a library's part of a thread's data.
 */
enum { LOADER_GAVE_UP = 127 };

/* Memory, devices and other processes may be there the next time; a wrong file stays wrong. */
static bool is_worth_a_restart(const board_entry *e, const launched *r)
{
    return !is_failure_told(e, r) || r->code == PONS_DEVICE || r->code == PONS_COMMUNICATION;
}

bool crowd_tell(const crowd *c, const launched *r, pons_error *err)
{
    int local = (int)(r - c->rank);
    board_entry e;
    char position[256];

    board_read(c->board, local, &e);
    tell_position(&e, r->when, position, sizeof position);
    if (!is_failure_told(&e, r) && r->output[1] != NULL && c->settings->log->terminal != NULL)
        stream_tell_tail(r->output[1], c->settings->log->terminal);
    if (r->signal == SIGKILL)
        pons_fail(err, (pons_status)(128 + SIGKILL), "rank %d was killed by SIGKILL%s\nhint: where "
                  "memory runs out the kernel kills, and 'dmesg' says so", r->rank, position);
    else if (r->signal != 0)
        pons_fail(err, (pons_status)(128 + r->signal), "rank %d was ended by %s (%d)%s", r->rank,
                  signal_name(r->signal), r->signal, position);
    else if (is_failure_told(&e, r) && all_say(c, e.text))
        pons_fail(err, (pons_status)r->code, "%s", e.text);
    else if (is_failure_told(&e, r))
        pons_fail(err, (pons_status)r->code, "rank %d%s: %s", r->rank,
                  e.step >= 0 ? position : "", without_name(e.text, r->rank));
    else if (r->code == PONS_DEVICE) /* our own code says more wherever it can */
        pons_fail(err, PONS_DEVICE, "rank %d ended: out of memory%s", r->rank, position);
    else if (r->code == LOADER_GAVE_UP)
        pons_fail(err, PONS_DEVICE, "rank %d was ended by the loader of shared libraries (its line "
                  "is above): out of memory for a thread's data, or a symbol is missing%s",
                  r->rank, position);
    else
        pons_fail(err, r->code == 0 ? PONS_FAILURE : (pons_status)r->code, "rank %d left before "
                  "the end with exit code %d%s", r->rank, r->code, position);
    shortage_hint(NULL, SHORTAGE_TRAIN, err);
    return is_worth_a_restart(&e, r);
}

void crowd_tell_end(const crowd *c, const launched *r)
{
    board_entry e;
    char position[256];

    board_read(c->board, (int)(r - c->rank), &e);
    tell_position(&e, r->when, position, sizeof position);
    if (r->signal != 0)
        log_detail(c->settings->log, "rank %d: %s%s", r->rank, signal_name(r->signal),
                   position);
    else
        log_detail(c->settings->log, "rank %d: exit code %d%s%s%s", r->rank, r->code, position,
                   e.ended && e.text[0] != '\0' ? ": " : "", e.ended ? e.text : "");
}
