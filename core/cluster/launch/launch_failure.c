/*
 * launch_failure.c - find the rank that failed first and describe its failure in one line.
 */
#include "cluster/launch/launch_internal.h"

#include <string.h>

#include "base/system/signal_name.h"
#include "config/memory_hints.h"

/* ---- the rank -------------------------------------------------------------------------------- */

/*
 * Whether a rank ended because others had gone. All remaining ranks see that, sometimes before the
 * launcher sees the exits. So a rank with a reason of its own is the cause.
 */
static bool lost_others(const rank_process *r)
{
    return r->signal == 0 && r->code == PONS_COMMUNICATION;
}

const rank_process *rank_set_root_cause(const rank_set *c)
{
    const rank_process *first = NULL;

    for (int i = 0; i < c->count; i++) {
        const rank_process *r = &c->rank[i];
        if (r->outcome != RANK_FAILED)
            continue;
        if (first == NULL || (lost_others(first) && !lost_others(r))
            || (lost_others(first) == lost_others(r) && r->when < first->when))
            first = r;
    }
    return first;
}

/* ---- the message ----------------------------------------------------------------------------- */

/* Age from which a note is printed with its age. */
static const double OLD_NOTE_S = 1;

/*
 * Write the last known position: " in step 12 (validation), last collective 40: all_reduce of 4096
 * bytes"; "" if there is none. An old note has its age: ", noted 7.5 s before".
 */
static void print_position(const status_page_entry *e, double end, char *out, size_t size)
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

/* Whether all ranks end with the same message, as for an unknown key: then no rank is named. */
static bool all_ranks_report(const rank_set *c, const char *text)
{
    for (int i = 0; i < c->count; i++) {
        status_page_entry e;
        status_page_read(c->status_page, i, &e);
        if (!e.ended || strcmp(e.text, text) != 0)
            return false;
    }
    return true;
}

/* The message without the "rank N: " that a rank writes itself. */
static const char *without_rank_name(const char *text, int rank)
{
    char name[32];
    size_t size = (size_t)snprintf(name, sizeof name, "rank %d: ", rank);

    return strncmp(text, name, size) == 0 ? text + size : text;
}

static bool is_failure_told(const status_page_entry *e, const rank_process *r)
{
    return e->ended && r->signal == 0 && e->status == r->code && e->text[0] != '\0';
}

/* Exit code of the dynamic loader when it cannot allocate a library's thread-local storage. */
enum { LOADER_GAVE_UP = 127 };

/*
 * Whether a restart may help: memory, devices and other processes may recover, a wrong file does
 * not.
 */
static bool is_worth_a_restart(const status_page_entry *e, const rank_process *r)
{
    return !is_failure_told(e, r) || r->code == PONS_DEVICE || r->code == PONS_COMMUNICATION;
}

bool rank_set_failure(const rank_set *c, const rank_process *r, pons_error *err)
{
    int local = (int)(r - c->rank);
    status_page_entry e;
    char position[256];

    status_page_read(c->status_page, local, &e);
    print_position(&e, r->when, position, sizeof position);
    if (!is_failure_told(&e, r) && r->output[1] != NULL && c->settings->log->terminal != NULL)
        launch_output_print_tail(r->output[1], c->settings->log->terminal);
    if (r->signal == SIGKILL)
        pons_fail(err, (pons_status)(128 + SIGKILL), "rank %d was killed by SIGKILL%s\nhint: where "
                  "memory runs out the kernel kills, and 'dmesg' says so", r->rank, position);
    else if (r->signal != 0)
        pons_fail(err, (pons_status)(128 + r->signal), "rank %d was ended by %s (%d)%s", r->rank,
                  signal_name(r->signal), r->signal, position);
    else if (is_failure_told(&e, r) && all_ranks_report(c, e.text))
        pons_fail(err, (pons_status)r->code, "%s", e.text);
    else if (is_failure_told(&e, r))
        pons_fail(err, (pons_status)r->code, "rank %d%s: %s", r->rank,
                  e.step >= 0 ? position : "", without_rank_name(e.text, r->rank));
    else if (r->code == PONS_DEVICE) /* a failure inside pons has a message wherever possible */
        pons_fail(err, PONS_DEVICE, "rank %d ended: out of memory%s", r->rank, position);
    else if (r->code == LOADER_GAVE_UP)
        pons_fail(err, PONS_DEVICE, "rank %d was ended by the loader of shared libraries (its line "
                  "is above): out of memory for a thread's data, or a symbol is missing%s",
                  r->rank, position);
    else
        pons_fail(err, r->code == 0 ? PONS_FAILURE : (pons_status)r->code, "rank %d left before "
                  "the end with exit code %d%s", r->rank, r->code, position);
    memory_hints_add(NULL, MEMORY_HINTS_TRAIN, err);
    return is_worth_a_restart(&e, r);
}

void rank_set_log_exit(const rank_set *c, const rank_process *r)
{
    status_page_entry e;
    char position[256];

    status_page_read(c->status_page, (int)(r - c->rank), &e);
    print_position(&e, r->when, position, sizeof position);
    if (r->signal != 0)
        log_detail(c->settings->log, "rank %d: %s%s", r->rank, signal_name(r->signal),
                   position);
    else
        log_detail(c->settings->log, "rank %d: exit code %d%s%s%s", r->rank, r->code, position,
                   e.ended && e.text[0] != '\0' ? ": " : "", e.ended ? e.text : "");
}
