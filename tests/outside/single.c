/*
 * single - a communicator of one process, whose sums leave the values unchanged. Built outside the
 * source tree with the installed headers alone.
 */
#include <pons/comm.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct state {
    atomic_bool aborted; /* set by any thread                                                     */
} state;

static pons_status single_open(const pons_comm_rank_info *place, const pons_comm_store *store,
                               void **comm, pons_error *err)
{
    if (place->size != 1)
        return pons_fail(err, PONS_CONFIG, "the communicator 'single' has one process, found %d",
                         place->size);
    *comm = calloc(1, sizeof(state));
    return *comm != NULL ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory");
}

/* Collectives end at their start; the pending operation is the communicator itself. */
static pons_status start(void *comm, void **pending, pons_error *err)
{
    *pending = comm;
    return PONS_OK;
}

static pons_status single_all_reduce(void *comm, void *buffer, int64_t count, pons_type type,
                                     void **pending, pons_error *err)
{
    return start(comm, pending, err);
}

static pons_status single_broadcast(void *comm, void *buffer, size_t size, int root,
                                    void **pending, pons_error *err)
{
    return start(comm, pending, err);
}

static pons_status single_all_gather(void *comm, const void *mine, size_t size, void *all,
                                     void **pending, pons_error *err)
{
    memcpy(all, mine, size);
    return start(comm, pending, err);
}

static pons_comm_state single_poll(void *comm, void *pending, double wait_s, pons_error *err)
{
    state *s = comm;

    if (!s->aborted)
        return PONS_COMM_DONE;
    pons_fail(err, PONS_COMMUNICATION, "aborted");
    return PONS_COMM_FAILED;
}

static void single_abort(void *comm)
{
    state *s = comm;

    s->aborted = true;
}

static const pons_comm_operations operations = {
    .open = single_open, .close = free, .all_reduce = single_all_reduce,
    .broadcast = single_broadcast, .all_gather = single_all_gather, .barrier = start,
    .poll = single_poll, .abort = single_abort
};

PONS_COMM(single, "1.0", "collectives of one process", PONS_NO_OPTIONS, operations);
