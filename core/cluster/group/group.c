/*
 * group.c - store, watch and communicator of a process, and one collective through them.
 */
#include "cluster/group/group_internal.h"

#include <stdlib.h>

#include "plugin/plugin_status.h"

#define CAUSE_S 1.5 /* from a collective's failure until the watch knows why, at most             */
#define CLOSE_S 5.0 /* rank 0 keeps the store for others that leave, ...                         */
#define FAILED_S 1.0 /* ... and that hear of a failure                                           */

/* ---- one collective -------------------------------------------------------------------------- */

operation *group_take(group *g, const char *kind, size_t size, pons_error *err)
{
    operation *o = g->spare;

    if (o != NULL) {
        g->spare = o->next;
    } else if ((o = calloc(1, sizeof *o)) != NULL) {
        o->below = g->made_operations;
        g->made_operations = o;
    } else {
        pons_fail(err, PONS_DEVICE, "out of memory for a collective");
        return NULL;
    }
    *o = (operation){ .below = o->below, .number = g->started++, .kind = kind, .size = size };
    watch_start(g->watch, o->number, kind, (int64_t)size);
    return o;
}

void group_give_back(group *g, operation *o)
{
    o->pending = NULL;
    o->next = g->spare;
    g->spare = o;
}

/*
 * What the plugin says is seldom the cause: a process that fails breaks the connections of all. The
 * watch knows the cause soon; where it does not, the plugin's line is it. What this process lacks,
 * memory say, is told at once: the others see only that it has gone. A plugin that says nothing
 * breaks its contract.
 */
pons_status group_fail(group *g, const operation *o, const pons_error *why, pons_error *err)
{
    bool said = why->status != PONS_OK;
    pons_error own = PONS_ERROR_INIT;

    if (why->status == PONS_COMMUNICATION && watch_cause(g->watch, CAUSE_S, err) != PONS_OK)
        return err->status;
    pons_fail(&own, said ? why->status : PONS_PLUGIN, "collective %lld (%s, %zu bytes): %s",
              (long long)o->number, o->kind, o->size,
              said ? why->text : "the comm plugin failed and has not said why");
    watch_publish(g->watch, &own);
    return pons_fail(err, own.status, "%s", own.text);
}

/* Give 'o' back and end: its plugin's part has not begun. */
pons_status group_fail_to_start(group *g, operation *o, const pons_error *why, pons_error *err)
{
    pons_status status = group_fail(g, o, why, err);

    group_give_back(g, o);
    return status;
}

pons_status group_end(group *g, operation *o, double wait_s, bool *ended, pons_error *err)
{
    pons_error why = PONS_ERROR_INIT;
    pons_comm_state state;

    if (wait_s > 0)
        watch_wait(g->watch, o->number, o->kind, (int64_t)o->size);
    do
        state = g->operations->poll(g->comm, o->pending, wait_s, &why);
    while (state == PONS_COMM_RUNNING && wait_s > 0);
    *ended = state != PONS_COMM_RUNNING;
    if (state == PONS_COMM_FAILED)
        group_fail(g, o, &why, err);
    if (*ended)
        watch_done(g->watch);
    return state == PONS_COMM_FAILED ? err->status : PONS_OK;
}

static pons_status run_to_end(group *g, operation *o, pons_status started, const pons_error *why,
                              pons_error *err)
{
    pons_status status;
    bool ended;

    if (started != PONS_OK)
        return group_fail_to_start(g, o, why, err);
    status = group_end(g, o, GROUP_POLL_S, &ended, err);
    group_give_back(g, o);
    return status;
}

static operation *take_alone(group *g, const char *kind, size_t size, pons_error *err)
{
    return group_end_sums(g, err) == PONS_OK ? group_take(g, kind, size, err) : NULL;
}

pons_status group_broadcast(group *g, void *buffer, size_t size, int root, pons_error *err)
{
    operation *o = take_alone(g, "broadcast", size, err);
    pons_error why = PONS_ERROR_INIT;

    if (o == NULL)
        return err->status;
    return run_to_end(g, o,
                      g->operations->broadcast(g->comm, buffer, size, root, &o->pending, &why),
                      &why, err);
}

pons_status group_all_gather(group *g, const void *mine, size_t size, void *all, pons_error *err)
{
    operation *o = take_alone(g, "all_gather", size, err);
    pons_error why = PONS_ERROR_INIT;

    if (o == NULL)
        return err->status;
    return run_to_end(g, o, g->operations->all_gather(g->comm, mine, size, all, &o->pending, &why),
                      &why, err);
}

pons_status group_barrier(group *g, pons_error *err)
{
    operation *o = take_alone(g, "barrier", 0, err);
    pons_error why = PONS_ERROR_INIT;

    if (o == NULL)
        return err->status;
    return run_to_end(g, o, g->operations->barrier(g->comm, &o->pending, &why), &why, err);
}

/* ---- open and close -------------------------------------------------------------------------- */

static void group_free(group *g)
{
    for (operation *o = g->made_operations, *next; o != NULL; o = next) {
        next = o->below;
        free(o);
    }
    group_drop_sums(g);
    free(g);
}

static pons_status open_comm(group *g, const group_settings *s, pons_error *err)
{
    const pons_comm_rank_info place = {
        .rank = g->rank, .size = g->size, .local_rank = s->place->local_rank,
        .local_size = s->place->local_size, .address = store_address(g->store),
        .timeout_s = s->timeout_s, .stream = s->stream
    };
    pons_error why = PONS_ERROR_INIT;

    if (plugin_answer(g->operations->open(&place, store_shared(g->store), &g->comm, &why),
                      "the comm plugin", "open", &why) == PONS_OK) {
        watch_comm(g->watch, g->operations, g->comm);
        return PONS_OK;
    }
    g->comm = NULL;
    if (why.status != PONS_COMMUNICATION || watch_cause(g->watch, CAUSE_S, err) == PONS_OK) {
        watch_publish(g->watch, &why);
        pons_fail(err, why.status, "%s", why.text);
    }
    return err->status;
}

static pons_status join(group *g, const group_settings *s, pons_error *err)
{
    const watch_settings w = { g->store, g->rank, g->size, s->timeout_s, s->failed, s->context };

    if (watch_open(&w, &g->watch, err) != PONS_OK)
        return err->status;
    if (open_comm(g, s, err) == PONS_OK)
        return PONS_OK;
    watch_leave(g->watch);
    watch_close(g->watch);
    return err->status;
}

pons_status group_open(const group_settings *settings, group **out, pons_error *err)
{
    group *g = calloc(1, sizeof *g);

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the processes of a run");
    *g = (group){ .rank = settings->place->rank, .size = settings->place->size,
                  .deterministic = settings->deterministic,
                  .operations = settings->comm->operations };
    group_prepare_sums(g, settings->stream);
    if (store_open(settings->place, settings->timeout_s, &g->store, err) != PONS_OK) {
        group_free(g);
        return err->status;
    }
    if (group_meet(g->store, settings, err) != PONS_OK || join(g, settings, err) != PONS_OK) {
        store_close_within(g->store, FAILED_S);
        group_free(g);
        return err->status;
    }
    *out = g;
    return PONS_OK;
}

/* Nobody ends a connection that another one still reads from. */
static void part(group *g)
{
    pons_error failed = PONS_ERROR_INIT;

    if (group_barrier(g, &failed) != PONS_OK)
        return;
    watch_leave(g->watch);
    watch_end(g->watch);
}

/* Who failed has not waited for all that it had started; after an abort that has failed too. */
static void abort_all(group *g)
{
    g->operations->abort(g->comm);
    for (operation *o = g->made_operations; o != NULL; o = o->below) {
        pons_error failed = PONS_ERROR_INIT;

        while (o->pending != NULL
               && g->operations->poll(g->comm, o->pending, GROUP_POLL_S, &failed)
                  == PONS_COMM_RUNNING)
            continue;
    }
}

void group_close(group *g, const pons_error *failure)
{
    pons_error cause = PONS_ERROR_INIT;

    if (failure == NULL) {
        part(g);
    } else if (watch_cause(g->watch, 0, &cause) == PONS_OK) {
        cause = *failure;
        watch_publish(g->watch, &cause);
    }
    watch_leave(g->watch);
    watch_comm(g->watch, NULL, NULL);
    if (failure != NULL)
        abort_all(g);
    g->operations->close(g->comm);
    watch_close(g->watch);
    store_close_within(g->store, failure == NULL ? CLOSE_S : FAILED_S);
    group_free(g);
}

int group_rank(const group *g)
{
    return g->rank;
}

int group_size(const group *g)
{
    return g->size;
}

const program_collective *group_collective(group *g)
{
    return &g->collective;
}

void group_fail_together(group *g, const pons_error *failure)
{
    watch_publish_common(g->watch, failure);
}

void group_leave(group *g, const pons_error *cause)
{
    watch_leave(g->watch);
    watch_publish_common(g->watch, cause);
}

void group_wait_heard(group *g, double wait_s)
{
    watch_wait_heard(g->watch, wait_s);
}

void group_before_end(group *g, void (*last)(void *context, pons_status status), void *context)
{
    watch_before_end(g->watch, last, context);
}

void group_note(group *g, int64_t step, const char *doing)
{
    watch_note(g->watch, step, doing);
}
