/*
 * nccl_launch.c - launch waiting collectives batch by batch, and record their events once NCCL has
 * queued them on the stream.
 */
#include "comms/nccl/nccl_internal.h"

#include <stdlib.h>

/* ---- lists ----------------------------------------------------------------------------------- */

void nccl_list_append(nccl_list *l, nccl_op *i)
{
    i->next = NULL;
    *l->last = i;
    l->last = &i->next;
}

static nccl_op *take_first(nccl_list *l)
{
    nccl_op *i = l->first;

    l->first = i->next;
    if (l->first == NULL)
        l->last = &l->first;
    return i;
}

static nccl_op *make_item(nccl_comm *c, pons_error *err)
{
    nccl_op *i = calloc(1, sizeof *i);

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

nccl_op *nccl_op_take(nccl_comm *c, pons_error *err)
{
    nccl_op *i = c->spare;

    if (i == NULL)
        return make_item(c, err);
    c->spare = i->next;
    i->recorded = i->staged = false;
    return i;
}

void nccl_op_give_back(nccl_comm *c, nccl_op *i)
{
    i->next = c->spare;
    c->spare = i;
}

void nccl_ops_free(nccl_comm *c)
{
    for (nccl_op *i = c->all, *older; i != NULL; i = older) {
        older = i->older;
        nccl_staging_free(c, &i->stage);
        c->driver.event_free(i->event);
        free(i);
    }
    c->all = NULL;
}

/* ---- launching ------------------------------------------------------------------------------- */

const char *nccl_kind_name(nccl_kind kind)
{
    static const char *const names[] = {
        [NCCL_ALL_REDUCE] = "an all-reduce", [NCCL_BROADCAST] = "a broadcast",
        [NCCL_ALL_GATHER] = "an all-gather"
    };

    return names[kind];
}

static ncclResult_t call_nccl(nccl_comm *c, const nccl_op *i)
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

static pons_status call_all(nccl_comm *c, const nccl_op *first, pons_error *err)
{
    const nccl_op *i = first;

    if (nccl_result(ncclGroupStart(), "a group of collectives", err) != PONS_OK)
        return err->status;
    for (; i != NULL && err->status == PONS_OK; i = i->next)
        if (i->count > 0)
            nccl_result(call_nccl(c, i), nccl_kind_name(i->kind), err);
    /* A group that has begun must end, also after a refused collective. */
    nccl_result(ncclGroupEnd(), nccl_kind_name(first->kind), err);
    return err->status;
}

/* Launch the oldest complete batch as one group of NCCL. */
static pons_status launch(nccl_comm *c, pons_error *err)
{
    int64_t batch = c->waiting.first->batch;

    while (c->waiting.first != NULL && c->waiting.first->batch == batch) {
        nccl_op *i = take_first(&c->waiting);
        nccl_list_append(&c->launched, i);
        if (i->staged && nccl_driver_check(&c->driver, nccl_staging_send(c, &i->stage),
                                           "a copy to the GPU failed", err) != PONS_OK)
            return err->status;
    }
    return call_all(c, c->launched.first, err);
}

/* The batch is on the stream: queue the copies to the host and the events behind it. */
static pons_status mark(nccl_comm *c, pons_error *err)
{
    while (c->launched.first != NULL) {
        nccl_op *i = take_first(&c->launched);
        if ((i->staged && nccl_driver_check(&c->driver, nccl_staging_fetch(c, &i->stage),
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

void nccl_launch_waiting(nccl_comm *c)
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
