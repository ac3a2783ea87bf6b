/*
 * nccl_item.c - collectives: started, launched in batches, looked at until they are done.
 */
#include "nccl_comm.h"

#include <stdlib.h>

/* ---- lists ----------------------------------------------------------------------------------- */

static void append(nccl_list *l, nccl_item *i)
{
    i->next = NULL;
    *l->last = i;
    l->last = &i->next;
}

static nccl_item *take_first(nccl_list *l)
{
    nccl_item *i = l->first;

    l->first = i->next;
    if (l->first == NULL)
        l->last = &l->first;
    return i;
}

static nccl_item *make_item(nccl_comm *c, pons_error *err)
{
    nccl_item *i = calloc(1, sizeof *i);

    if (i == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for a collective");
        return NULL;
    }
    if (nccl_driver_check(&c->driver, c->driver.event_new(&i->event, CU_EVENT_DEFAULT),
                          "no event for a collective", err) != PONS_OK) {
        free(i);
        return NULL;
    }
    i->older = c->all;
    c->all = i;
    return i;
}

static nccl_item *take_spare(nccl_comm *c, pons_error *err)
{
    nccl_item *i = c->spare;

    if (i == NULL)
        return make_item(c, err);
    c->spare = i->next;
    i->recorded = i->staged = false;
    return i;
}

static void give_back(nccl_comm *c, nccl_item *i)
{
    i->next = c->spare;
    c->spare = i;
}

void nccl_items_free(nccl_comm *c)
{
    for (nccl_item *i = c->all, *older; i != NULL; i = older) {
        older = i->older;
        nccl_stage_free(c, &i->stage);
        c->driver.event_free(i->event);
        free(i);
    }
    c->all = NULL;
}

/* ---- launching ------------------------------------------------------------------------------- */

static const char *const names[] = {
    [NCCL_ALL_REDUCE] = "an all-reduce", [NCCL_BROADCAST] = "a broadcast",
    [NCCL_ALL_GATHER] = "an all-gather"
};

static ncclResult_t call_nccl(nccl_comm *c, const nccl_item *i)
{
    ncclComm_t comm = atomic_load(&c->handle);

    switch (i->kind) {
    case NCCL_ALL_REDUCE:
        return ncclAllReduce(i->from, i->to, i->count, i->type, ncclSum, comm, c->stream);
    case NCCL_BROADCAST:
        return ncclBroadcast(i->from, i->to, i->count, i->type, i->root, comm, c->stream);
    default:
        return ncclAllGather(i->from, i->to, i->count, i->type, comm, c->stream);
    }
}

static pons_status call_all(nccl_comm *c, const nccl_item *first, pons_error *err)
{
    const nccl_item *i = first;

    if (nccl_result(ncclGroupStart(), "a group of collectives", err) != PONS_OK)
        return err->status;
    for (; i != NULL && err->status == PONS_OK; i = i->next)
        if (i->count > 0)
            nccl_result(call_nccl(c, i), names[i->kind], err);
    /* Also where one was refused: what begins a group must end it. */
    nccl_result(ncclGroupEnd(), names[first->kind], err);
    return err->status;
}

/* The oldest batch that is complete leaves as one group of NCCL. */
static pons_status launch(nccl_comm *c, pons_error *err)
{
    int64_t batch = c->waiting.first->batch;

    while (c->waiting.first != NULL && c->waiting.first->batch == batch) {
        nccl_item *i = take_first(&c->waiting);
        append(&c->launched, i);
        if (i->staged && nccl_driver_check(&c->driver, nccl_stage_send(c, &i->stage),
                                           "a copy to the GPU failed", err) != PONS_OK)
            return err->status;
    }
    return call_all(c, c->launched.first, err);
}

/* NCCL has put the batch on the stream: behind it come the copies to the host and the events. */
static pons_status mark(nccl_comm *c, pons_error *err)
{
    while (c->launched.first != NULL) {
        nccl_item *i = take_first(&c->launched);
        if ((i->staged && nccl_driver_check(&c->driver, nccl_stage_fetch(c, &i->stage),
                                            "a copy from the GPU failed", err) != PONS_OK)
            || nccl_driver_check(&c->driver, c->driver.event_record(i->event, c->stream),
                                 "an event cannot be recorded", err) != PONS_OK)
            return err->status;
        i->recorded = true;
    }
    return PONS_OK;
}

static bool has_complete_batch(const nccl_comm *c)
{
    return c->waiting.first != NULL && !(c->grouping && c->waiting.first->batch == c->batches);
}

/* As far as NCCL lets them; its failure is the communicator's. With the lock held. */
static void move_on(nccl_comm *c)
{
    pons_error err = PONS_ERROR_INIT;

    while (!atomic_load(&c->failed)) {
        ncclResult_t state = nccl_state(c);
        if (state == ncclInProgress)
            return;
        if (nccl_result(state, "a collective", &err) == PONS_OK && mark(c, &err) == PONS_OK) {
            if (!has_complete_batch(c))
                return;
            launch(c, &err);
        }
        if (err.status != PONS_OK)
            nccl_fail(c, &err);
    }
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Buffers of the host are replaced by the stage's; a gather finds its own part where it belongs. */
static pons_status place_buffers(nccl_comm *c, nccl_item *i, size_t in_size, size_t out_size,
                                 pons_error *err)
{
    bool from = i->count == 0 || nccl_stage_unneeded(c, i->from);
    bool to = i->count == 0 || nccl_stage_unneeded(c, i->to);

    if (from != to)
        return pons_fail(err, PONS_COMMUNICATION, "%s between memory of a GPU and of the host",
                         names[i->kind]);
    if (from)
        return PONS_OK;
    i->stage.in = (nccl_part){ i->kind == NCCL_ALL_GATHER ? (size_t)c->rank * in_size : 0,
                               in_size };
    i->stage.out = (nccl_part){ 0, out_size };
    if (nccl_stage_fill(c, &i->stage, i->from, i->to, err) != PONS_OK)
        return err->status;
    i->staged = true;
    i->from = (char *)(uintptr_t)i->stage.device + i->stage.in.at;
    i->to = (void *)(uintptr_t)i->stage.device;
    return PONS_OK;
}

static pons_status start(nccl_comm *c, const nccl_item *what, size_t in_size, size_t out_size,
                         void **pending, pons_error *err)
{
    nccl_item *i;

    if (nccl_enter(c, err) != PONS_OK)
        return err->status;
    i = atomic_load(&c->failed) ? NULL : take_spare(c, err);
    if (i != NULL) {
        i->kind = what->kind;
        i->from = what->from;
        i->to = what->to;
        i->count = what->count;
        i->type = what->type;
        i->root = what->root;
        i->batch = c->grouping ? c->batches : ++c->batches;
        if (place_buffers(c, i, in_size, out_size, err) == PONS_OK) {
            append(&c->waiting, i);
            move_on(c);
            *pending = i;
        } else {
            give_back(c, i);
        }
    } else if (err->status == PONS_OK) {
        nccl_failure(c, err);
    }
    nccl_leave(c);
    return err->status;
}

pons_status nccl_all_reduce(void *comm, void *buffer, int64_t count, pons_type type,
                            void **pending, pons_error *err)
{
    bool wide = type == PONS_F64;
    size_t size = (size_t)count * (wide ? sizeof(double) : sizeof(float));
    const nccl_item what = { .kind = NCCL_ALL_REDUCE, .from = buffer, .to = buffer,
                             .count = (size_t)count, .type = wide ? ncclDouble : ncclFloat };

    return start(comm, &what, size, size, pending, err);
}

pons_status nccl_broadcast(void *comm, void *buffer, size_t size, int root, void **pending,
                           pons_error *err)
{
    const nccl_item what = { .kind = NCCL_BROADCAST, .from = buffer, .to = buffer, .count = size,
                             .type = ncclUint8, .root = root };

    return start(comm, &what, size, size, pending, err);
}

pons_status nccl_all_gather(void *comm, const void *mine, size_t size, void *all, void **pending,
                            pons_error *err)
{
    const nccl_comm *c = comm;
    const nccl_item what = { .kind = NCCL_ALL_GATHER, .from = mine, .to = all, .count = size,
                             .type = ncclUint8 };

    return start(comm, &what, size, size * (size_t)c->size, pending, err);
}

/* The sum of one number, which is nobody's. */
pons_status nccl_barrier(void *comm, void **pending, pons_error *err)
{
    const nccl_comm *c = comm;

    return nccl_all_reduce(comm, (void *)(uintptr_t)c->word, 1, PONS_F32, pending, err);
}

pons_status nccl_group_begin(void *comm, pons_error *err)
{
    nccl_comm *c = comm;

    if (nccl_enter(c, err) != PONS_OK)
        return err->status;
    c->grouping = true;
    c->batches++;
    nccl_leave(c);
    return PONS_OK;
}

pons_status nccl_group_end(void *comm, pons_error *err)
{
    nccl_comm *c = comm;

    if (nccl_enter(c, err) != PONS_OK)
        return err->status;
    c->grouping = false;
    move_on(c);
    nccl_leave(c);
    return PONS_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/*
 * An event's time is known as its distance from another one. One that was waited for has ended just
 * now and becomes that other one, so that the clocks of GPU and host do not drift apart.
 */
static void take_time(nccl_comm *c, nccl_item *i, bool waited)
{
    float distance;

    c->ended = nccl_now();
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

/* An event passes also when an abort has made the GPU let go, but that is known before. */
static pons_comm_state look(nccl_comm *c, nccl_item *i, bool waited)
{
    pons_error err = PONS_ERROR_INIT;
    CUresult code;

    move_on(c);
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
        nccl_stage_empty(&i->stage);
    return PONS_COMM_DONE;
}

pons_comm_state nccl_poll(void *comm, void *pending, double wait_s, pons_error *err)
{
    nccl_comm *c = comm;
    nccl_item *i = pending;
    const double until = nccl_now() + wait_s;
    pons_comm_state state;

    for (int64_t round = 0;; round++) {
        if (nccl_enter(c, err) != PONS_OK)
            return PONS_COMM_FAILED;
        state = look(c, i, round > 0);
        if (state != PONS_COMM_RUNNING)
            give_back(c, i);
        nccl_leave(c);
        if (state != PONS_COMM_RUNNING || nccl_now() >= until)
            break;
        nccl_rest(round);
    }
    if (state == PONS_COMM_FAILED)
        nccl_failure(c, err);
    return state;
}

/* Of the thread that polls. */
double nccl_ended(void *comm)
{
    return ((const nccl_comm *)comm)->ended;
}
