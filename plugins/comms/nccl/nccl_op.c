/*
 * nccl_op.c - start collectives, and poll them until they are done.
 */
#include "comms/nccl/nccl_internal.h"

#include "base/clock.h"

/* ---- starting -------------------------------------------------------------------------------- */

/* The staging buffer replaces buffers of the host; a gather's own part lies in its place. */
static pons_status place_buffers(nccl_comm *c, nccl_op *i, size_t in_size, size_t out_size,
                                 pons_error *err)
{
    bool from = i->count == 0 || nccl_staging_unneeded(c, i->from);
    bool to = i->count == 0 || nccl_staging_unneeded(c, i->to);

    if (from != to)
        return pons_fail(err, PONS_COMMUNICATION, "%s between memory of a GPU and of the host",
                         nccl_kind_name(i->kind));
    if (from)
        return PONS_OK;
    i->stage.in = (nccl_part){ i->kind == NCCL_ALL_GATHER ? (size_t)c->rank * in_size : 0,
                               in_size };
    i->stage.out = (nccl_part){ 0, out_size };
    if (nccl_staging_fill(c, &i->stage, i->from, i->to, err) != PONS_OK)
        return err->status;
    i->staged = true;
    i->from = (char *)(uintptr_t)i->stage.device + i->stage.in.at;
    i->to = (void *)(uintptr_t)i->stage.device;
    return PONS_OK;
}

static pons_status start(nccl_comm *c, const nccl_op *what, size_t in_size, size_t out_size,
                         void **pending, pons_error *err)
{
    nccl_op *i;

    if (nccl_lock(c, err) != PONS_OK)
        return err->status;
    i = atomic_load(&c->failed) ? NULL : nccl_op_take(c, err);
    if (i != NULL) {
        i->kind = what->kind;
        i->from = what->from;
        i->to = what->to;
        i->count = what->count;
        i->type = what->type;
        i->root = what->root;
        i->batch = c->grouping ? c->batches : ++c->batches;
        if (place_buffers(c, i, in_size, out_size, err) == PONS_OK) {
            nccl_list_append(&c->waiting, i);
            nccl_launch_waiting(c);
            *pending = i;
        } else {
            nccl_op_give_back(c, i);
        }
    } else if (err->status == PONS_OK) {
        nccl_failure(c, err);
    }
    nccl_unlock(c);
    return err->status;
}

pons_status nccl_all_reduce(void *comm, void *buffer, int64_t count, pons_type type,
                            void **pending, pons_error *err)
{
    bool wide = type == PONS_F64;
    size_t size = (size_t)count * (wide ? sizeof(double) : sizeof(float));
    const nccl_op what = { .kind = NCCL_ALL_REDUCE, .from = buffer, .to = buffer,
                           .count = (size_t)count, .type = wide ? ncclDouble : ncclFloat };

    return start(comm, &what, size, size, pending, err);
}

pons_status nccl_broadcast(void *comm, void *buffer, size_t size, int root, void **pending,
                           pons_error *err)
{
    const nccl_op what = { .kind = NCCL_BROADCAST, .from = buffer, .to = buffer, .count = size,
                           .type = ncclUint8, .root = root };

    return start(comm, &what, size, size, pending, err);
}

pons_status nccl_all_gather(void *comm, const void *mine, size_t size, void *all, void **pending,
                            pons_error *err)
{
    const nccl_comm *c = comm;
    const nccl_op what = { .kind = NCCL_ALL_GATHER, .from = mine, .to = all, .count = size,
                           .type = ncclUint8 };

    return start(comm, &what, size, size * (size_t)c->size, pending, err);
}

/* A barrier sums one number that is not used. */
pons_status nccl_barrier(void *comm, void **pending, pons_error *err)
{
    const nccl_comm *c = comm;

    return nccl_all_reduce(comm, (void *)(uintptr_t)c->word, 1, PONS_F32, pending, err);
}

pons_status nccl_group_begin(void *comm, pons_error *err)
{
    nccl_comm *c = comm;

    if (nccl_lock(c, err) != PONS_OK)
        return err->status;
    c->grouping = true;
    c->batches++;
    nccl_unlock(c);
    return PONS_OK;
}

pons_status nccl_group_end(void *comm, pons_error *err)
{
    nccl_comm *c = comm;

    if (nccl_lock(c, err) != PONS_OK)
        return err->status;
    c->grouping = false;
    nccl_launch_waiting(c);
    nccl_unlock(c);
    return PONS_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/*
 * The time of an event is its distance from the base event. An event that was waited for has ended
 * at this moment and becomes the base, so that the clocks of GPU and host do not drift apart.
 */
static void take_time(nccl_comm *c, nccl_op *i, bool waited)
{
    float distance;

    c->ended = seconds_now();
    if (waited) {
        CUevent before = c->base;
        c->base = i->event;
        c->base_time = c->ended;
        i->event = before;
    } else if (c->driver.event_elapsed(&distance, c->base, i->event) == CUDA_SUCCESS
               && c->base_time + 1e-3 * (double)distance < c->ended) {
        c->ended = c->base_time + 1e-3 * (double)distance;
    }
}

/* An abort lets events pass as well, but 'failed' is set before it. */
static pons_comm_state look(nccl_comm *c, nccl_op *i, bool waited)
{
    pons_error err = PONS_ERROR_INIT;
    CUresult code;

    nccl_launch_waiting(c);
    if (atomic_load(&c->failed))
        return PONS_COMM_FAILED;
    if (!i->recorded)
        return PONS_COMM_RUNNING;
    code = c->driver.event_query(i->event);
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_NOT_READY) {
        nccl_driver_check(&c->driver, code, "the GPU failed in a collective", &err);
        nccl_fail(c, &err);
    }
    if (atomic_load(&c->failed))
        return PONS_COMM_FAILED;
    if (code == CUDA_ERROR_NOT_READY)
        return PONS_COMM_RUNNING;
    take_time(c, i, waited);
    if (i->staged)
        nccl_staging_empty(&i->stage);
    return PONS_COMM_DONE;
}

pons_comm_state nccl_poll(void *comm, void *pending, double wait_s, pons_error *err)
{
    nccl_comm *c = comm;
    nccl_op *i = pending;
    const double until = seconds_now() + wait_s;
    pons_comm_state state;

    for (int64_t round = 0;; round++) {
        if (nccl_lock(c, err) != PONS_OK)
            return PONS_COMM_FAILED;
        state = look(c, i, round > 0);
        if (state != PONS_COMM_RUNNING)
            nccl_op_give_back(c, i);
        nccl_unlock(c);
        if (state != PONS_COMM_RUNNING || seconds_now() >= until)
            break;
        nccl_rest(round);
    }
    if (state == PONS_COMM_FAILED)
        nccl_failure(c, err);
    return state;
}

/* Called by the thread that polls. */
double nccl_ended(void *comm)
{
    return ((const nccl_comm *)comm)->ended;
}
