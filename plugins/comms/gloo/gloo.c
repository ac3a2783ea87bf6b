/*
 * gloo - collectives of host memory over TCP, by the library gloo.
 */
#include <pons/comm.h>

#include "comms/gloo/gloo_link.h"
#include "comms/comm_peers.h"
#include "comms/async_queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pons_status fail_with(const char *text, pons_error *err)
{
    bool is_short;

    if (text == NULL)
        return PONS_OK;
    is_short = strstr(text, GLOO_LINK_NO_MEMORY) != NULL
               || strstr(text, GLOO_LINK_NO_FILES) != NULL;
    return pons_fail(err, is_short ? PONS_DEVICE : PONS_COMMUNICATION, "%s", text);
}

/* ---- the transport of the queue -------------------------------------------------------------- */

static const char *gloo_run_collective(gloo_link *link, const async_work *w, char *text)
{
    switch (w->kind) {
    case QUEUE_ALL_REDUCE:
        return w->type == PONS_F64
               ? gloo_link_sum_doubles(link, w->buffer, (size_t)w->count, w->number, text)
               : gloo_link_sum_floats(link, w->buffer, (size_t)w->count, w->number, text);
    case QUEUE_BROADCAST:
        return gloo_link_broadcast(link, w->buffer, w->size, w->root, w->number, text);
    case QUEUE_ALL_GATHER:
        return gloo_link_gather(link, w->mine, w->size, w->buffer, w->number, text);
    default:
        return gloo_link_barrier(link, w->number, text);
    }
}

/* Empty buffers are not sent: gloo refuses them. */
static pons_status run_work(void *link, const async_work *w, pons_error *err)
{
    char text[GLOO_LINK_TEXT];

    if (w->size == 0 && w->kind != QUEUE_BARRIER)
        return PONS_OK;
    return fail_with(gloo_run_collective(link, w, text), err);
}

static void link_stop(void *link)
{
    gloo_link_stop(link);
}

static void link_close(void *link)
{
    gloo_link_close(link);
}

static const async_transport transport = { run_work, link_stop, link_close };

/* ---- the plugin ------------------------------------------------------------------------------ */

static pons_status open_link(const pons_comm_rank_info *place, int *socket, void **comm,
                             pons_error *err)
{
    const gloo_link_ranks ranks = { place->rank, place->size, place->address, place->timeout_s,
                                    socket };
    char text[GLOO_LINK_TEXT];
    gloo_link *link;

    if (fail_with(gloo_link_open(&ranks, &link, text), err) != PONS_OK)
        return err->status;
    return async_queue_open(&transport, link, place->rank, place->size, comm, err);
}

static void add_hint(pons_error *err)
{
    size_t used = strlen(err->text);

    if (err->status == PONS_DEVICE && strstr(err->text, GLOO_LINK_NO_FILES) != NULL)
        snprintf(err->text + used, sizeof err->text - used,
                 "\nhint: ulimit -n allows more of them");
}

static pons_status connect_all(const pons_comm_rank_info *place, const pons_comm_store *store,
                               void **comm, pons_error *err)
{
    int *socket = malloc((size_t)place->size * sizeof *socket);

    if (socket == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", place->size);
    if (comm_peers_connect(place, store, socket, err) == PONS_OK) {
        open_link(place, socket, comm, err);
        comm_peers_close(place->size, socket);
    }
    add_hint(err);
    free(socket);
    return err->status;
}

/* A signal that is pending would be delivered when it is unblocked: take it. */
static void drop_signal(const sigset_t *which, const sigset_t *blocked_before)
{
    static const struct timespec at_once = { 0, 0 };

    if (sigismember(blocked_before, SIGPIPE) == 0)
        while (sigtimedwait(which, NULL, &at_once) > 0 || errno == EINTR)
            continue;
}

/*
 * gloo writes to connections that the other side may have closed. That shall be an error, not
 * SIGPIPE. Threads that begin here inherit the mask.
 */
static pons_status gloo_open(const pons_comm_rank_info *place, const pons_comm_store *store,
                             void **comm, pons_error *err)
{
    sigset_t pipe, before;
    pons_status status;

    if (place->stream != NULL)
        return pons_fail(err, PONS_CONFIG, "the communicator 'gloo' needs buffers in host memory");
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    status = connect_all(place, store, comm, err);
    drop_signal(&pipe, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static const pons_comm_operations operations = {
    .open = gloo_open, .close = async_queue_close, .all_reduce = async_queue_all_reduce,
    .broadcast = async_queue_broadcast, .all_gather = async_queue_all_gather,
    .barrier = async_queue_barrier,
    .poll = async_queue_poll, .abort = async_queue_abort, .ended = async_queue_ended
};

PONS_COMM(gloo, "1.0", "collectives of host memory over TCP, by the library gloo", PONS_NO_OPTIONS,
          operations);
