/*
 * gloo - collectives of host memory over TCP, by the library gloo.
 */
#include <pons/comm.h>

#include "gloo_link.h"
#include "queue.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

static pons_status fail(const char *text, pons_error *err)
{
    if (text == NULL)
        return PONS_OK;
    return pons_fail(err, strstr(text, GLOO_LINK_NO_MEMORY) != NULL ? PONS_DEVICE
                                                                    : PONS_COMMUNICATION,
                     "%s", text);
}

/* ---- the store, as gloo_link sees it --------------------------------------------------------- */

static bool tell(const pons_error *failure, char *text)
{
    strncpy(text, failure->text, GLOO_LINK_TEXT - 1);
    text[GLOO_LINK_TEXT - 1] = '\0';
    return false;
}

static bool store_set(void *context, const char *key, const void *value, size_t size, char *text)
{
    const pons_comm_store *s = context;
    pons_error err = PONS_ERROR_INIT;

    return s->set(s->context, key, value, size, &err) == PONS_OK || tell(&err, text);
}

static bool store_get(void *context, const char *key, void *value, size_t room, size_t *size,
                      char *text)
{
    const pons_comm_store *s = context;
    pons_error err = PONS_ERROR_INIT;

    return s->get(s->context, key, value, room, size, &err) == PONS_OK || tell(&err, text);
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

/* Threads that begin here inherit the mask. */
static pons_status connect_all(const pons_comm_place *place, const pons_comm_store *store,
                               void **comm, pons_error *err)
{
    gloo_link_store shared = { (void *)store, store_set, store_get, PONS_COMM_VALUE_MAX };
    char text[GLOO_LINK_TEXT];
    gloo_link *link;

    if (fail(gloo_link_open(place->rank, place->size, place->address, place->timeout_s, &shared,
                            &link, text), err) != PONS_OK)
        return err->status;
    return queue_open(&transport, link, place->rank, place->size, comm, err);
}

/* gloo's threads write to connections that the other side may have closed: an error, no signal. */
static pons_status gloo_open(const pons_comm_place *place, const pons_comm_store *store,
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
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static const pons_comm_operations operations = {
    NULL, gloo_open, queue_close, queue_all_reduce, queue_broadcast, queue_all_gather,
    queue_barrier, queue_poll, queue_abort, NULL, NULL, queue_ended, NULL
};

PONS_COMM(gloo, "1.0", "collectives of host memory over TCP, by the library gloo", operations)
