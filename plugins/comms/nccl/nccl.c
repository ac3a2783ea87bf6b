/*
 * nccl - collectives between GPUs by NVIDIA's NCCL: a process for each GPU, or a thread of one.
 *
 * Collectives are queued on the stream that the device gives, so buffers of the GPU need no other
 * order. Buffers of the host are copied on the same stream. NCCL never blocks: the functions keep
 * the times that comm.h promises.
 */
#include "comms/nccl/nccl_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define OLDEST NCCL_VERSION(2, 14, 0) /* communicators that do not block                          */

/* Versions below 2.9 have one digit for each part of the number. */
static void put_version(int version, char *text, size_t size)
{
    snprintf(text, size, "NCCL %d.%d.%d", version < 10000 ? version / 1000 : version / 10000,
             version / 100 % (version < 10000 ? 10 : 100), version % 100);
}

static pons_status check_library(pons_error *err)
{
    char text[64];
    int version = 0;

    if (nccl_result(ncclGetVersion(&version), "asking NCCL for its version", err) != PONS_OK)
        return err->status;
    put_version(version, text, sizeof text);
    if (version < OLDEST || ncclCommInitRankConfig == NULL || ncclCommFinalize == NULL)
        return pons_fail(err, PONS_DEVICE, "%s is too old: expected at least 2.14", text);
    return PONS_OK;
}

static void describe(char *text, size_t size)
{
    int version = 0;

    ncclGetVersion(&version);
    put_version(version, text, size);
}

static pons_status nccl_available(pons_error *err)
{
    nccl_driver driver;

    if (check_library(err) != PONS_OK)
        return err->status;
    return nccl_driver_open(&driver, err);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* The id by which NCCL knows the ranks as one group: rank 0 gets it from NCCL. */
static pons_status share_id(const nccl_comm *c, const pons_comm_store *store, ncclUniqueId *id,
                            pons_error *err)
{
    static const char key[] = "nccl.id";
    size_t size;

    if (c->rank == 0) {
        if (nccl_result(ncclGetUniqueId(id), "asking NCCL for the id of a group", err) != PONS_OK)
            return err->status;
        return store->set(store->context, key, id, sizeof *id, err);
    }
    if (store->get(store->context, key, id, sizeof *id, &size, err) != PONS_OK)
        return err->status;
    if (size != sizeof *id)
        return pons_fail(err, PONS_COMMUNICATION, "rank 0's id of the group has %zu bytes, "
                         "expected %zu", size, sizeof *id);
    return PONS_OK;
}

static pons_status join(nccl_comm *c, const ncclUniqueId *id, double timeout_s, pons_error *err)
{
    const double until = seconds_now() + timeout_s;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t handle = NULL;
    ncclResult_t state;

    config.blocking = 0;
    state = ncclCommInitRankConfig(&handle, c->size, *id, c->rank, &config);
    atomic_store(&c->handle, handle);
    for (int64_t round = 0; state == ncclInProgress; round++) {
        if (seconds_now() >= until)
            return pons_fail(err, PONS_COMMUNICATION, "NCCL has not joined the %d processes "
                             "within %g s", c->size, timeout_s);
        nccl_rest(round);
        state = nccl_state(c);
    }
    return nccl_result(state, "joining the processes by NCCL", err);
}

static pons_status prepare(nccl_comm *c, double timeout_s, pons_error *err)
{
    const nccl_driver *d = &c->driver;

    if (nccl_driver_check(d, d->event_new(&c->base, CU_EVENT_DEFAULT), "no event on the GPU", err)
            != PONS_OK
        || nccl_driver_check(d, d->device_new(&c->word, sizeof(float)), "no memory on the GPU", err)
               != PONS_OK)
        return err->status;
    if (nccl_driver_check(d, nccl_drain(c, timeout_s), "the GPU's stream does not run", err)
        == PONS_OK)
        c->base_time = seconds_now();
    return err->status;
}

static nccl_comm *new_comm(const pons_comm_rank_info *place, pons_error *err)
{
    nccl_comm *c = calloc(1, sizeof *c);

    if (c == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for a communicator");
        return NULL;
    }
    c->rank = place->rank;
    c->size = place->size;
    c->stream = place->stream;
    c->waiting.last = &c->waiting.first;
    c->launched.last = &c->launched.first;
    pthread_mutex_init(&c->lock, NULL);
    if (nccl_driver_open(&c->driver, err) == PONS_OK
        && nccl_driver_check(&c->driver, c->driver.stream_context(c->stream, &c->context),
                             "the device's stream is none of CUDA", err) == PONS_OK
        && nccl_end_open(c, err) == PONS_OK)
        return c;
    pthread_mutex_destroy(&c->lock);
    free(c);
    return NULL;
}

static pons_status open_group(nccl_comm *c, const pons_comm_rank_info *place,
                              const pons_comm_store *store, pons_error *err)
{
    ncclUniqueId id;

    if (nccl_lock(c, err) != PONS_OK)
        return err->status;
    if (prepare(c, place->timeout_s, err) == PONS_OK && share_id(c, store, &id, err) == PONS_OK)
        join(c, &id, place->timeout_s, err);
    nccl_unlock(c);
    return err->status;
}

static pons_status nccl_open(const pons_comm_rank_info *place, const pons_comm_store *store,
                             void **comm, pons_error *err)
{
    nccl_comm *c;

    if (place->stream == NULL)
        return pons_fail(err, PONS_CONFIG, "the communicator 'nccl' joins GPUs, not processors\n"
                         "hint: --set distribute.backend=auto takes the one that suits the "
                         "devices");
    if (check_library(err) != PONS_OK)
        return err->status;
    c = new_comm(place, err);
    if (c == NULL)
        return err->status;
    if (open_group(c, place, store, err) != PONS_OK) {
        nccl_fail(c, err);
        nccl_close(c);
        return err->status;
    }
    *comm = c;
    return PONS_OK;
}

static const pons_comm_operations operations = {
    .available = nccl_available, .open = nccl_open, .close = nccl_close,
    .all_reduce = nccl_all_reduce, .broadcast = nccl_broadcast, .all_gather = nccl_all_gather,
    .barrier = nccl_barrier, .poll = nccl_poll, .abort = nccl_abort,
    .group_begin = nccl_group_begin, .group_end = nccl_group_end, .ended = nccl_ended,
    .describe = describe
};

PONS_COMM(nccl, "1.0", "collectives between GPUs by NVIDIA's NCCL", PONS_NO_OPTIONS,
          operations);
