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

static pons_status fail(const char *text, pons_error *err)
{
    bool is_short;

    if (text == NULL)
        return PONS_OK;
    is_short = strstr(text, GLOO_LINK_NO_MEMORY) != NULL
               || strstr(text, GLOO_LINK_NO_FILES) != NULL;
    return pons_fail(err, is_short ? PONS_DEVICE : PONS_COMMUNICATION, "%s", text);
}

/* ---- the transport of the queue -------------------------------------------------------------- */

static const char *run_one(gloo_link *link, const queue_work *w, char *text)
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

/* Nothing is sent where there is nothing: gloo refuses empty buffers. */
static pons_status run(void *link, const queue_work *w, pons_error *err)
{
    char text[GLOO_LINK_TEXT];

    return w->size == 0 && w->kind != QUEUE_BARRIER ? PONS_OK : fail(run_one(link, w, text), err);
}

static void link_stop(void *link)
{
    gloo_link_stop(link);
}

static void link_close(void *link)
{
    gloo_link_close(link);
}

static const queue_transport transport = { run, link_stop, link_close };

/* ---- the plugin ------------------------------------------------------------------------------ */

static pons_status open_link(const pons_comm_rank_info *place, int *socket, void **comm,
                             pons_error *err)
{
    const gloo_link_ranks ranks = { place->rank, place->size, place->address, place->timeout_s,
                                    socket };
    char text[GLOO_LINK_TEXT];
    gloo_link *link;

    if (fail(gloo_link_open(&ranks, &link, text), err) != PONS_OK)
        return err->status;
    return queue_open(&transport, link, place->rank, place->size, comm, err);
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
    if (peers_connect(place, store, socket, err) == PONS_OK) {
        open_link(place, socket, comm, err);
        peers_close(place->size, socket);
    }
    add_hint(err);
    free(socket);
    return err->status;
}

/* A signal that came while it was blocked would come as soon as it no longer is. */
static void drop_signal(const sigset_t *which, const sigset_t *blocked_before)
{
    static const struct timespec at_once = { 0, 0 };

    if (sigismember(blocked_before, SIGPIPE) == 0)
        while (sigtimedwait(which, NULL, &at_once) > 0 || errno == EINTR)
            continue;
}

/*
 * gloo writes to connections that the other side may have closed: an error, no signal. Threads that
 * begin here inherit the mask.
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
    NULL, gloo_open, queue_close, queue_all_reduce, queue_broadcast, queue_all_gather,
    queue_barrier, queue_poll, queue_abort, NULL, NULL, queue_ended, NULL
};

PONS_COMM(gloo, "1.0", "collectives of host memory over TCP, by the library gloo", operations)
