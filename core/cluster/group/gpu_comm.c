/*
 * gpu_comm.c - sums over the cards of a process by a comm plugin, and the values that its
 * communicators share while they open.
 */
#include "cluster/group/gpu_comm.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <pons/comm.h>

#include "base/clock.h"
#include "base/thread/thread.h"
#include "cluster/store/table.h"
#include "plugin/plugin_status.h"

#define POLL_S 1.0 /* an abort ends every wait, so this only bounds a wait for it                 */

typedef struct seat {
    card_comm *owner;
    int rank;
    void *comm;              /* NULL: has not joined, or has left                                 */
    double ended;            /* of the sum that was last waited for                               */
    program_collective collective;
} seat;

struct card_comm {
    const pons_comm_operations *operations;
    pons_comm_store store;
    int replicas;
    double timeout_s;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool broken;
    store_table values;       /* as in store.h, without the way there                             */
    seat seat[];
};

/* ---- what communicators share while they open ------------------------------------------------ */

static pons_status set_value(void *context, const char *key, const void *value, size_t size,
                             pons_error *err)
{
    card_comm *c = context;
    bool set;

    pthread_mutex_lock(&c->lock);
    set = store_table_set(&c->values, key, value, size);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return set ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory for '%s'", key);
}

/* Who is to set a value sets it, or fails, and the others are woken. */
static pons_status get_value(void *context, const char *key, void *value, size_t room, size_t *size,
                             pons_error *err)
{
    card_comm *c = context;
    const struct timespec until = clock_at(seconds_now() + c->timeout_s);
    const store_entry *e;

    pthread_mutex_lock(&c->lock);
    while ((e = store_table_find(&c->values, key)) == NULL && !c->broken
           && pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT)
        continue;
    if (e != NULL) {
        *size = e->size;
        memcpy(value, e->value, e->size < room ? e->size : room);
    }
    pthread_mutex_unlock(&c->lock);
    return e != NULL ? PONS_OK
         : pons_fail(err, PONS_COMMUNICATION, "no replica has set '%s'", key);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static pons_status start(void *context, void *buffer, int64_t count, pons_type type,
                         void **pending, pons_error *err)
{
    seat *s = context;

    return plugin_answer(s->owner->operations->all_reduce(s->comm, buffer, count, type, pending,
                                                          err),
                         "the comm plugin", "all_reduce", err);
}

static pons_status finish(void *context, void *pending, pons_error *err)
{
    seat *s = context;
    const pons_comm_operations *o = s->owner->operations;
    pons_comm_state state;

    do
        state = o->poll(s->comm, pending, POLL_S, err);
    while (state == PONS_COMM_RUNNING);
    if (state == PONS_COMM_FAILED)
        return plugin_answer(PONS_COMMUNICATION, "the comm plugin", "poll", err);
    s->ended = o->ended == NULL ? seconds_now() : o->ended(s->comm);
    return PONS_OK;
}

static double ended(void *context)
{
    return ((const seat *)context)->ended;
}

/* ---- the communicator ------------------------------------------------------------------------ */

pons_status card_comm_new(int replicas, const struct plugin *comm, double timeout_s,
                          card_comm **out, pons_error *err)
{
    card_comm *c = calloc(1, sizeof *c + (size_t)replicas * sizeof *c->seat);

    if (c == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d replicas", replicas);
    c->operations = comm->operations;
    c->store = (pons_comm_store){ c, set_value, get_value };
    c->replicas = replicas;
    c->timeout_s = timeout_s;
    pthread_mutex_init(&c->lock, NULL);
    thread_condition(&c->changed);
    for (int r = 0; r < replicas; r++)
        c->seat[r] = (seat){ .owner = c, .rank = r };
    *out = c;
    return PONS_OK;
}

void card_comm_free(card_comm *c)
{
    if (c == NULL)
        return;
    store_table_clear(&c->values);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

const program_collective *card_comm_seat(card_comm *c, int rank, void *stream)
{
    seat *s = &c->seat[rank];

    s->collective = (program_collective){ c->replicas, rank, s, start, finish, ended, stream };
    return &s->collective;
}

pons_status card_comm_join(card_comm *c, int rank, pons_error *err)
{
    seat *s = &c->seat[rank];
    const pons_comm_rank_info place = {
        .rank = rank, .size = c->replicas, .local_rank = rank, .local_size = c->replicas,
        .address = "127.0.0.1", .timeout_s = c->timeout_s, .stream = s->collective.stream
    };
    void *comm = NULL;

    if (plugin_answer(c->operations->open(&place, &c->store, &comm, err), "the comm plugin", "open",
                      err) != PONS_OK)
        return err->status;
    pthread_mutex_lock(&c->lock);
    s->comm = comm;
    if (c->broken)
        c->operations->abort(comm);
    pthread_mutex_unlock(&c->lock);
    return PONS_OK;
}

/* An abort that finds it gone comes too late. */
void card_comm_leave(card_comm *c, int rank)
{
    void *comm;

    pthread_mutex_lock(&c->lock);
    comm = c->seat[rank].comm;
    c->seat[rank].comm = NULL;
    pthread_mutex_unlock(&c->lock);
    if (comm != NULL)
        c->operations->close(comm);
}

void card_comm_abort(card_comm *c)
{
    pthread_mutex_lock(&c->lock);
    c->broken = true;
    for (int r = 0; r < c->replicas; r++)
        if (c->seat[r].comm != NULL)
            c->operations->abort(c->seat[r].comm);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}
