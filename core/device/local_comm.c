/*
 * local_comm.c - the all-reduce among the replicas of a process.
 */
#include "device/local_comm.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/pairwise_sum.h"

/* A sum in progress. Its address does not change. */
typedef struct operation {
    int64_t count;
    pons_type type;
    int arrived, done, left;/* replicas that entered a buffer, added a share, have the result    */
    double ended;           /* time when the last share was added                                 */
    void *buffer[];         /* one per replica                                                    */
} operation;

/* One replica's view of the communicator. */
typedef struct endpoint {
    local_comm *comm;
    int rank;
    int64_t started, worked;/* sums begun; sums whose share is added                              */
    double ended;           /* time of the last sum waited for                                    */
    program_collective collective;
} endpoint;

struct local_comm {
    int replicas, broken;   /* broken: rank of the failed replica, -1: none                       */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t oldest, room;   /* sums oldest .. oldest + room - 1 are in 'ring'                     */
    operation **ring;
    endpoint *endpoint;
};

/* ---- a share of a sum; it begins at a multiple of 64 elements -------------------------------- */

static void add_tile(const operation *o, int replicas, int64_t at, int count)
{
    double sum[PAIRWISE_SUM_TILE];
    size_t size = o->type == PONS_F64 ? sizeof(double) : sizeof(float);

    pairwise_sum(o->buffer, replicas, o->type == PONS_F64, at, count, sum);
    for (int r = 0; r < replicas; r++)
        memcpy((char *)o->buffer[r] + (size_t)at * size, sum, (size_t)count * size);
}

static void add_share(const operation *o, int replicas, int rank)
{
    int64_t cells = ceil_div_i64(o->count, 64), end = 64 * (cells * (rank + 1) / replicas);

    end = min_i64(end, o->count);
    for (int64_t at = 64 * (cells * rank / replicas); at < end; at += PAIRWISE_SUM_TILE)
        add_tile(o, replicas, at, end - at < PAIRWISE_SUM_TILE ? (int)(end - at)
                 : PAIRWISE_SUM_TILE);
}

/* ---- sums in progress; the lock is held ------------------------------------------------------ */

static operation *operation_of(const local_comm *c, int64_t number)
{
    return c->ring[number % c->room];
}

/* Double the ring. Sums in progress keep their numbers. */
static bool grow_ring(local_comm *c)
{
    int64_t room = c->room > 0 ? 2 * c->room : 16;
    operation **ring = calloc((size_t)room, sizeof *ring);

    if (ring == NULL)
        return false;
    for (int64_t n = c->oldest; n < c->oldest + c->room; n++)
        ring[n % room] = operation_of(c, n);
    free(c->ring);
    c->ring = ring;
    c->room = room;
    for (int64_t i = 0; i < room; i++) {
        if (ring[i] == NULL)
            ring[i] = calloc(1, sizeof **ring + (size_t)c->replicas * sizeof *ring[i]->buffer);
        if (ring[i] == NULL)
            return false;
    }
    return true;
}

/* Enter this replica's buffer into the next sum. */
static pons_status enter_buffer(endpoint *s, void *buffer, int64_t count, pons_type type,
                                pons_error *err)
{
    local_comm *c = s->comm;
    operation *o;

    if (s->started == c->oldest + c->room && !grow_ring(c))
        return pons_fail(err, PONS_DEVICE, "out of memory for a sum over replicas");
    o = operation_of(c, s->started);
    if (o->arrived == 0)
        *o = (operation){ .count = count, .type = type };
    else if (o->count != count || o->type != type)
        return pons_fail(err, PONS_COMMUNICATION, "sum %lld: replica %d has %lld numbers, others "
                         "have %lld", (long long)s->started, s->rank, (long long)count,
                         (long long)o->count);
    o->buffer[s->rank] = buffer;
    if (++o->arrived == c->replicas)
        pthread_cond_broadcast(&c->changed);
    s->started++;
    return PONS_OK;
}

/* Add this replica's share of every sum that has all buffers. Releases the lock meanwhile. */
static void add_ready_shares(endpoint *s)
{
    local_comm *c = s->comm;

    while (s->worked < s->started && c->broken < 0) {
        operation *o = operation_of(c, s->worked);

        if (o->arrived < c->replicas)
            return;
        pthread_mutex_unlock(&c->lock);
        add_share(o, c->replicas, s->rank);
        pthread_mutex_lock(&c->lock);
        s->worked++;
        if (++o->done == c->replicas) {
            o->ended = seconds_now();
            pthread_cond_broadcast(&c->changed);
        }
    }
}

static void end_wait(endpoint *s, operation *o)
{
    local_comm *c = s->comm;

    s->ended = o->ended;
    o->left++;
    while (operation_of(c, c->oldest)->left == c->replicas) {
        operation *last = operation_of(c, c->oldest++);
        last->arrived = last->done = last->left = 0;
    }
}

/* ---- operations of a replica ----------------------------------------------------------------- */

static pons_status fail_broken(const endpoint *s, pons_error *err)
{
    return pons_fail(err, PONS_COMMUNICATION, "replica %d has failed", s->comm->broken);
}

static pons_status start_sum(void *context, void *buffer, int64_t count, pons_type type,
                             void **pending, pons_error *err)
{
    endpoint *s = context;
    local_comm *c = s->comm;
    pons_status status;

    pthread_mutex_lock(&c->lock);
    *pending = (void *)(uintptr_t)s->started;
    status = c->broken >= 0 ? fail_broken(s, err) : enter_buffer(s, buffer, count, type, err);
    if (status == PONS_OK)
        add_ready_shares(s);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static pons_status finish_sum(void *context, void *pending, pons_error *err)
{
    endpoint *s = context;
    local_comm *c = s->comm;
    int64_t number = (int64_t)(uintptr_t)pending;
    pons_status status = PONS_OK;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        add_ready_shares(s);
        if (c->broken >= 0 || operation_of(c, number)->done == c->replicas)
            break;
        if (s->worked == s->started || operation_of(c, s->worked)->arrived < c->replicas)
            pthread_cond_wait(&c->changed, &c->lock);
    }
    if (c->broken >= 0)
        status = fail_broken(s, err);
    else
        end_wait(s, operation_of(c, number));
    pthread_mutex_unlock(&c->lock);
    return status;
}

static double ended(void *context)
{
    return ((const endpoint *)context)->ended;
}

/* ---- the communicator ------------------------------------------------------------------------ */

static void init_endpoints(local_comm *c)
{
    for (int r = 0; r < c->replicas; r++)
        c->endpoint[r] = (endpoint){ .comm = c, .rank = r,
                                     .collective = { c->replicas, r, c->endpoint + r, start_sum,
                                         finish_sum, ended } };
}

pons_status local_comm_new(int replicas, local_comm **out, pons_error *err)
{
    local_comm *c = calloc(1, sizeof *c);

    if (c == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d replicas", replicas);
    *c = (local_comm){ .replicas = replicas, .broken = -1 };
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->endpoint = calloc((size_t)replicas, sizeof *c->endpoint);
    if (c->endpoint == NULL || !grow_ring(c)) {
        local_comm_free(c);
        return pons_fail(err, PONS_DEVICE, "out of memory for %d replicas", replicas);
    }
    init_endpoints(c);
    *out = c;
    return PONS_OK;
}

void local_comm_free(local_comm *c)
{
    if (c == NULL)
        return;
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    for (int64_t i = 0; i < c->room; i++)
        free(c->ring[i]);
    free(c->ring);
    free(c->endpoint);
    free(c);
}

const program_collective *local_comm_collective(local_comm *c, int rank)
{
    return &c->endpoint[rank].collective;
}

void local_comm_abort(local_comm *c, int rank)
{
    pthread_mutex_lock(&c->lock);
    if (c->broken < 0)
        c->broken = rank;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}
