/*
 * gpu_comm.c - all-reduce among the GPUs of a process by a comm plugin, and the store that its
 * communicators use while they open.
 */
#include "cluster/group/gpu_comm.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <pons/comm.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/thread/thread.h"
#include "cluster/store/table.h"
#include "plugin/plugin_status.h"

#define POLL_S 1.0 /* period of polling; an abort ends every wait                                 */

/* One replica's communicator. */
typedef struct endpoint {
    gpu_comm *owner;
    int rank;
    void *comm;              /* NULL: not joined, or left                                         */
    double ended;            /* time of the last sum waited for                                   */
    program_collective collective;
} endpoint;

struct gpu_comm {
    const pons_comm_operations *operations;
    pons_comm_store store;
    int replicas;
    double timeout_s;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool broken;
    store_table values;       /* a store as in store.h, but within the process                    */
    endpoint endpoint[];
};

/* ---- the store of the communicators ---------------------------------------------------------- */

static pons_status set_value(void *context, const char *key, const void *value, size_t size,
                             pons_error *err)
{
    gpu_comm *c = context;
    bool set;

    pthread_mutex_lock(&c->lock);
    set = store_table_set(&c->values, key, value, size);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return set ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory for '%s'", key);
}

/* A replica that should set the value either sets it or fails and wakes the others. */
static pons_status get_value(void *context, const char *key, void *value, size_t room, size_t *size,
                             pons_error *err)
{
    gpu_comm *c = context;
    const struct timespec until = clock_timespec(seconds_now() + c->timeout_s);
    const store_entry *e;

    pthread_mutex_lock(&c->lock);
    while ((e = store_table_find(&c->values, key)) == NULL && !c->broken
           && pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT)
        continue;
    if (e != NULL) {
        *size = e->size;
        memcpy(value, e->value, min_size(e->size, room));
    }
    pthread_mutex_unlock(&c->lock);
    return e != NULL ? PONS_OK
         : pons_fail(err, PONS_COMMUNICATION, "no replica has set '%s'", key);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static pons_status start_sum(void *context, void *buffer, int64_t count, pons_type type,
                             void **pending, pons_error *err)
{
    endpoint *s = context;

    return plugin_status(s->owner->operations->all_reduce(s->comm, buffer, count, type, pending,
                                                          err),
                         "the comm plugin", "all_reduce", err);
}

static pons_status finish_sum(void *context, void *pending, pons_error *err)
{
    endpoint *s = context;
    const pons_comm_operations *o = s->owner->operations;
    pons_comm_state state;

    do
        state = o->poll(s->comm, pending, POLL_S, err);
    while (state == PONS_COMM_RUNNING);
    if (state == PONS_COMM_FAILED)
        return plugin_status(PONS_COMMUNICATION, "the comm plugin", "poll", err);
    s->ended = o->ended == NULL ? seconds_now() : o->ended(s->comm);
    return PONS_OK;
}

static double ended(void *context)
{
    return ((const endpoint *)context)->ended;
}

/* ---- the communicator ------------------------------------------------------------------------ */

pons_status gpu_comm_new(int replicas, const struct plugin *comm, double timeout_s,
                         gpu_comm **out, pons_error *err)
{
    gpu_comm *c = calloc(1, sizeof *c + (size_t)replicas * sizeof *c->endpoint);

    if (c == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d replicas", replicas);
    c->operations = comm->operations;
    c->store = (pons_comm_store){ c, set_value, get_value };
    c->replicas = replicas;
    c->timeout_s = timeout_s;
    pthread_mutex_init(&c->lock, NULL);
    thread_condition(&c->changed);
    for (int r = 0; r < replicas; r++)
        c->endpoint[r] = (endpoint){ .owner = c, .rank = r };
    *out = c;
    return PONS_OK;
}

void gpu_comm_free(gpu_comm *c)
{
    if (c == NULL)
        return;
    store_table_clear(&c->values);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

const program_collective *gpu_comm_collective(gpu_comm *c, int rank, void *stream)
{
    endpoint *s = &c->endpoint[rank];

    s->collective = (program_collective){ c->replicas, rank, s, start_sum, finish_sum, ended,
        stream };
    return &s->collective;
}

pons_status gpu_comm_join(gpu_comm *c, int rank, pons_error *err)
{
    endpoint *s = &c->endpoint[rank];
    const pons_comm_rank_info place = {
        .rank = rank, .size = c->replicas, .local_rank = rank, .local_size = c->replicas,
        .address = "127.0.0.1", .timeout_s = c->timeout_s, .stream = s->collective.stream
    };
    void *comm = NULL;

    if (plugin_status(c->operations->open(&place, &c->store, &comm, err), "the comm plugin", "open",
                      err) != PONS_OK)
        return err->status;
    pthread_mutex_lock(&c->lock);
    s->comm = comm;
    if (c->broken)
        c->operations->abort(comm);
    pthread_mutex_unlock(&c->lock);
    return PONS_OK;
}

/* An abort after this finds no communicator and does nothing. */
void gpu_comm_leave(gpu_comm *c, int rank)
{
    void *comm;

    pthread_mutex_lock(&c->lock);
    comm = c->endpoint[rank].comm;
    c->endpoint[rank].comm = NULL;
    pthread_mutex_unlock(&c->lock);
    if (comm != NULL)
        c->operations->close(comm);
}

void gpu_comm_abort(gpu_comm *c)
{
    pthread_mutex_lock(&c->lock);
    c->broken = true;
    for (int r = 0; r < c->replicas; r++)
        if (c->endpoint[r].comm != NULL)
            c->operations->abort(c->endpoint[r].comm);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}
