/*
 * group.c - store, watchdog and communicator of a process, and its single collectives.
 */
#include "cluster/group/group_internal.h"

#include <stdlib.h>

#include "plugin/plugin_status.h"

#define CAUSE_S 1.5 /* wait for the watchdog's root cause after a failed collective               */
#define CLOSE_S 5.0 /* wait of rank 0 for the other ranks at a normal end                         */
#define FAILED_S 1.0 /* the same after a failure                                                  */

/* ---- one collective -------------------------------------------------------------------------- */

operation *group_operation_new(group *g, const char *kind, size_t size, pons_error *err)
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
    watchdog_started(g->watchdog, o->number, kind, (int64_t)size);
    return o;
}

void group_operation_free(group *g, operation *o)
{
    o->pending = NULL;
    o->next = g->spare;
    g->spare = o;
}

/*
 * Report a failed collective. The plugin's message is seldom the root cause, because a process that
 * fails breaks the connections of all. So a failure of communication first waits for the watchdog's
 * root cause. Other failures, such as a lack of memory, are published at once: other ranks only see
 * a lost connection. A plugin that fails without a message breaks its contract.
 */
static pons_status group_operation_fail(group *g, const operation *o, const pons_error *why,
                                        pons_error *err)
{
    bool said = why->status != PONS_OK;
    pons_error own = PONS_ERROR_INIT;

    if (why->status == PONS_COMMUNICATION && watchdog_cause(g->watchdog, CAUSE_S, err) != PONS_OK)
        return err->status;
    pons_fail(&own, said ? why->status : PONS_PLUGIN, "collective %lld (%s, %zu bytes): %s",
              (long long)o->number, o->kind, o->size,
              said ? why->text : "the comm plugin failed and has not said why");
    watchdog_report_failure(g->watchdog, &own);
    return pons_fail(err, own.status, "%s", own.text);
}

/* Fail a collective that the plugin has not started, and release 'o'. */
pons_status group_operation_not_started(group *g, operation *o, const pons_error *why,
                                        pons_error *err)
{
    pons_status status = group_operation_fail(g, o, why, err);

    group_operation_free(g, o);
    return status;
}

pons_status group_operation_end(group *g, operation *o, double wait_s, bool *ended, pons_error *err)
{
    pons_error why = PONS_ERROR_INIT;
    pons_comm_state state;

    if (wait_s > 0)
        watchdog_waiting(g->watchdog, o->number, o->kind, (int64_t)o->size);
    do
        state = g->operations->poll(g->comm, o->pending, wait_s, &why);
    while (state == PONS_COMM_RUNNING && wait_s > 0);
    *ended = state != PONS_COMM_RUNNING;
    if (state == PONS_COMM_FAILED)
        group_operation_fail(g, o, &why, err);
    if (*ended)
        watchdog_done(g->watchdog);
    return state == PONS_COMM_FAILED ? err->status : PONS_OK;
}

static pons_status run_to_end(group *g, operation *o, pons_status started, const pons_error *why,
                              pons_error *err)
{
    pons_status status;
    bool ended;

    if (started != PONS_OK)
        return group_operation_not_started(g, o, why, err);
    status = group_operation_end(g, o, GROUP_POLL_S, &ended, err);
    group_operation_free(g, o);
    return status;
}

static operation *new_single_operation(group *g, const char *kind, size_t size, pons_error *err)
{
    return group_start_all_sums(g, err) == PONS_OK ? group_operation_new(g, kind, size, err) : NULL;
}

pons_status group_broadcast(group *g, void *buffer, size_t size, int root, pons_error *err)
{
    operation *o = new_single_operation(g, "broadcast", size, err);
    pons_error why = PONS_ERROR_INIT;

    if (o == NULL)
        return err->status;
    return run_to_end(g, o,
                      g->operations->broadcast(g->comm, buffer, size, root, &o->pending, &why),
                      &why, err);
}

pons_status group_all_gather(group *g, const void *mine, size_t size, void *all, pons_error *err)
{
    operation *o = new_single_operation(g, "all_gather", size, err);
    pons_error why = PONS_ERROR_INIT;

    if (o == NULL)
        return err->status;
    return run_to_end(g, o, g->operations->all_gather(g->comm, mine, size, all, &o->pending, &why),
                      &why, err);
}

pons_status group_barrier(group *g, pons_error *err)
{
    operation *o = new_single_operation(g, "barrier", 0, err);
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
    group_free_sums(g);
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

    if (plugin_status(g->operations->open(&place, store_comm_interface(g->store), &g->comm, &why),
                      "the comm plugin", "open", &why) == PONS_OK) {
        watchdog_set_comm(g->watchdog, g->operations, g->comm);
        return PONS_OK;
    }
    g->comm = NULL;
    if (why.status != PONS_COMMUNICATION || watchdog_cause(g->watchdog, CAUSE_S, err) == PONS_OK) {
        watchdog_report_failure(g->watchdog, &why);
        pons_fail(err, why.status, "%s", why.text);
    }
    return err->status;
}

static pons_status open_watchdog(group *g, const group_settings *s, pons_error *err)
{
    const watchdog_settings w = { g->store, g->rank, g->size, s->timeout_s, s->failed, s->context };

    if (watchdog_open(&w, &g->watchdog, err) != PONS_OK)
        return err->status;
    if (open_comm(g, s, err) == PONS_OK)
        return PONS_OK;
    watchdog_announce_exit(g->watchdog);
    watchdog_close(g->watchdog);
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
    group_init_sums(g, settings->stream);
    if (store_open(settings->place, settings->timeout_s, &g->store, err) != PONS_OK) {
        group_free(g);
        return err->status;
    }
    if (group_join(g->store, settings, err) != PONS_OK || open_watchdog(g, settings,
                                                                        err) != PONS_OK) {
        store_close(g->store, FAILED_S);
        group_free(g);
        return err->status;
    }
    *out = g;
    return PONS_OK;
}

/*
 * Normal end. All ranks wait, so that no rank closes a connection from which another still reads.
 */
static void end_normally(group *g)
{
    pons_error failed = PONS_ERROR_INIT;

    if (group_barrier(g, &failed) != PONS_OK)
        return;
    watchdog_announce_exit(g->watchdog);
    watchdog_end(g->watchdog);
}

/* Abort the communicator and wait for all started operations, which then fail. */
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
        end_normally(g);
    } else if (watchdog_cause(g->watchdog, 0, &cause) == PONS_OK) {
        cause = *failure;
        watchdog_report_failure(g->watchdog, &cause);
    }
    watchdog_announce_exit(g->watchdog);
    watchdog_set_comm(g->watchdog, NULL, NULL);
    if (failure != NULL)
        abort_all(g);
    g->operations->close(g->comm);
    watchdog_close(g->watchdog);
    store_close(g->store, failure == NULL ? CLOSE_S : FAILED_S);
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

void group_fail_shared(group *g, const pons_error *failure)
{
    watchdog_report_shared(g->watchdog, failure);
}

void group_publish_interruption(group *g, const pons_error *cause)
{
    watchdog_announce_exit(g->watchdog);
    watchdog_report_shared(g->watchdog, cause);
}

void group_wait_acknowledged(group *g, double wait_s)
{
    watchdog_wait_acknowledged(g->watchdog, wait_s);
}

void group_set_exit_hook(group *g, void (*last)(void *context, pons_status status), void *context)
{
    watchdog_set_exit_hook(g->watchdog, last, context);
}

void group_note(group *g, int64_t step, const char *doing)
{
    watchdog_note(g->watchdog, step, doing);
}
