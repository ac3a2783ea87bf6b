/*
 * async_queue.c - one thread that runs collectives in order.
 *
 * The queue keeps its first failure. It fails all collectives, started and future ones, and stops
 * the transport, so that the other processes do not wait for this one.
 */
#include "comms/async_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

typedef struct item {
    async_work work;
    pons_comm_state state;
    double ended;             /* seconds of CLOCK_MONOTONIC                                       */
    struct item *next;
} item;

typedef struct queue {
    const async_transport *transport;
    void *link;
    int rank, size;
    uint64_t started;         /* collectives so far; the next one's number                        */
    uint32_t transfers;       /* runs of the transport: two for each collective                   */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    item *first, **last;      /* collectives not done; the first one is running                   */
    item *spare;
    bool closing;
    double ended;             /* end of the item that was last found done                         */
    pons_error failure;       /* PONS_OK: none                                                    */
} queue;

/* The collective of a process; equal bytes on all of them. */
typedef struct announcement {
    uint64_t number, size;
    uint32_t kind, type;
    int64_t root;
} announcement;

/* ---- on the queue's thread ------------------------------------------------------------------- */

static void describe_collective(const announcement *a, char *out, size_t room)
{
    static const char *const names[] = {
        "an all-reduce", "a broadcast", "an all-gather", "a barrier"
    };

    if (a->kind == QUEUE_BARRIER)
        snprintf(out, room, "%s", names[a->kind]);
    else if (a->kind == QUEUE_BROADCAST)
        snprintf(out, room, "%s of %llu bytes from rank %lld", names[a->kind],
                 (unsigned long long)a->size, (long long)a->root);
    else
        snprintf(out, room, "%s of %llu bytes%s", names[a->kind], (unsigned long long)a->size,
                 a->kind != QUEUE_ALL_REDUCE ? "" : a->type == PONS_F64 ? " (f64)" : " (f32)");
}

static pons_status compare_announcements(const queue *q, const announcement *mine,
                                         const announcement *first, pons_error *err)
{
    char here[96], there[96];

    if (memcmp(mine, first, sizeof *mine) == 0)
        return PONS_OK;
    if (first->kind > QUEUE_BARRIER || first->number != mine->number)
        return pons_fail(err, PONS_COMMUNICATION, "collective %llu: what rank 0 sent is not its "
                         "announcement", (unsigned long long)mine->number);
    describe_collective(mine, here, sizeof here);
    describe_collective(first, there, sizeof there);
    return pons_fail(err, PONS_COMMUNICATION, "collective %llu: rank %d starts %s, rank 0 %s",
                     (unsigned long long)mine->number, q->rank, here, there);
}

static pons_status announce_collective(queue *q, uint64_t number, const async_work *work,
                                       pons_error *err)
{
    announcement mine = { .number = number, .size = work->size, .kind = work->kind,
                          .type = work->kind == QUEUE_ALL_REDUCE ? work->type : 0,
                          .root = work->root }, first = mine;
    async_work w = { .kind = QUEUE_BROADCAST, .number = q->transfers++, .size = sizeof first,
                     .buffer = &first };
    pons_status status = q->transport->run(q->link, &w, err);

    return status == PONS_OK ? compare_announcements(q, &mine, &first, err) : status;
}

static pons_status run_collective(queue *q, uint64_t number, async_work *work, pons_error *err)
{
    pons_status status = q->size > 1 ? announce_collective(q, number, work, err) : PONS_OK;

    work->number = q->transfers++;
    return status == PONS_OK ? q->transport->run(q->link, work, err) : status;
}

/* Keep the first failure. Requires the lock. */
static void fail_queue(queue *q, const pons_error *failure)
{
    if (q->failure.status == PONS_OK)
        q->failure = *failure;
    pthread_cond_broadcast(&q->changed);
}

static void end_first(queue *q, pons_comm_state state)
{
    item *done = q->first;

    q->first = done->next;
    if (q->first == NULL)
        q->last = &q->first;
    done->state = state;
    done->ended = seconds_now();
    pthread_cond_broadcast(&q->changed);
}

static void *run_collectives(void *context)
{
    queue *q = context;
    uint64_t number = 0;

    pthread_mutex_lock(&q->lock);
    for (;;) {
        pons_error err = PONS_ERROR_INIT;
        while (q->first == NULL && !q->closing)
            pthread_cond_wait(&q->changed, &q->lock);
        if (q->first == NULL)
            break;
        if (q->failure.status == PONS_OK) {
            pthread_mutex_unlock(&q->lock);
            if (run_collective(q, number++, &q->first->work, &err) != PONS_OK)
                q->transport->stop(q->link);
            pthread_mutex_lock(&q->lock);
            if (err.status != PONS_OK)
                fail_queue(q, &err);
        }
        end_first(q, q->failure.status == PONS_OK ? PONS_COMM_DONE : PONS_COMM_FAILED);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- functions of the plugin ----------------------------------------------------------------- */

static void queue_free(queue *q)
{
    for (item *i = q->spare, *next; i != NULL; i = next) {
        next = i->next;
        free(i);
    }
    q->transport->close(q->link);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

pons_status async_queue_open(const async_transport *transport, void *link, int rank, int size,
                             void **out, pons_error *err)
{
    queue *q = calloc(1, sizeof *q);
    pthread_condattr_t clock;
    int code;

    if (q == NULL) {
        transport->close(link);
        return pons_fail(err, PONS_DEVICE, "out of memory for a communicator");
    }
    *q = (queue){ .transport = transport, .link = link, .rank = rank, .size = size };
    q->last = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &clock);
    pthread_condattr_destroy(&clock);
    code = pthread_create(&q->thread, NULL, run_collectives, q);
    if (code != 0) {
        queue_free(q);
        return pons_fail(err, PONS_DEVICE, "out of memory for the thread of a communicator, or too "
                         "many threads: %s", strerror(code));
    }
    *out = q;
    return PONS_OK;
}

void async_queue_close(void *comm)
{
    queue *q = comm;

    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    queue_free(q);
}

static pons_status start_collective(queue *q, const async_work *work, void **pending,
                                    pons_error *err)
{
    item *new;

    pthread_mutex_lock(&q->lock);
    if (q->failure.status != PONS_OK) {
        pons_fail(err, q->failure.status, "%s", q->failure.text);
        pthread_mutex_unlock(&q->lock);
        return q->failure.status;
    }
    new = q->spare;
    if (new != NULL)
        q->spare = new->next;
    else
        new = malloc(sizeof *new);
    if (new != NULL) {
        *new = (item){ .work = *work };
        *q->last = new;
        q->last = &new->next;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    if (new == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a collective");
    *pending = new;
    return PONS_OK;
}

pons_status async_queue_all_reduce(void *comm, void *buffer, int64_t count, pons_type type,
                                   void **pending, pons_error *err)
{
    size_t size = (size_t)count * (type == PONS_F64 ? sizeof(double) : sizeof(float));

    return start_collective(comm, &(async_work){ .kind = QUEUE_ALL_REDUCE, .type = type,
                                                 .count = count, .size = size, .buffer = buffer },
                            pending, err);
}

pons_status async_queue_broadcast(void *comm, void *buffer, size_t size, int root, void **pending,
                                  pons_error *err)
{
    return start_collective(comm, &(async_work){ .kind = QUEUE_BROADCAST, .root = root,
                                                 .size = size, .buffer = buffer }, pending, err);
}

pons_status async_queue_all_gather(void *comm, const void *mine, size_t size, void *all,
                                   void **pending, pons_error *err)
{
    return start_collective(comm, &(async_work){ .kind = QUEUE_ALL_GATHER, .size = size,
                                                 .buffer = all, .mine = mine }, pending, err);
}

pons_status async_queue_barrier(void *comm, void **pending, pons_error *err)
{
    return start_collective(comm, &(async_work){ .kind = QUEUE_BARRIER }, pending, err);
}

static struct timespec time_after(double seconds)
{
    return clock_timespec(seconds_now() + (seconds < 1e6 ? seconds : 1e6));
}

pons_comm_state async_queue_poll(void *comm, void *pending, double wait_s, pons_error *err)
{
    queue *q = comm;
    item *i = pending;
    struct timespec end = time_after(wait_s > 0 ? wait_s : 0);
    pons_comm_state state;

    pthread_mutex_lock(&q->lock);
    while (i->state == PONS_COMM_RUNNING && wait_s > 0
           && pthread_cond_timedwait(&q->changed, &q->lock, &end) != ETIMEDOUT)
        continue;
    state = i->state;
    if (state == PONS_COMM_FAILED)
        pons_fail(err, q->failure.status, "%s", q->failure.text);
    if (state != PONS_COMM_RUNNING) {
        q->ended = i->ended;
        i->next = q->spare;
        q->spare = i;
    }
    pthread_mutex_unlock(&q->lock);
    return state;
}

/* Called by the thread that polls. */
double async_queue_ended(void *comm)
{
    return ((const queue *)comm)->ended;
}

void async_queue_abort(void *comm)
{
    static const pons_error aborted = { PONS_COMMUNICATION, "the communicator was aborted" };
    queue *q = comm;

    pthread_mutex_lock(&q->lock);
    fail_queue(q, &aborted);
    pthread_mutex_unlock(&q->lock);
    q->transport->stop(q->link);
}
