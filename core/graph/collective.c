/*
 * collective.c - the calls by which a program hands a sum over replicas to what joins them.
 *
 * The start copies its argument (or finds it in place) and begins the sum there; the wait ends it.
 * Who adds up, and how, is the business of settings.collective.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/compile.h"

typedef struct half {
    const program_collective *collective;
    void **pending;
    pons_tensor tensor;
    int64_t count;
    size_t size;
} half;

static void take_over(const half *h, const pons_call *call)
{
    if (call->output[0] != call->input[0])
        memcpy(call->output[0], call->input[0], h->size);
}

static pons_status run_start(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const half *h = kernel->state;

    take_over(h, call);
    return h->collective->start(h->collective->context, call->output[0], h->count, h->tensor.type,
                                h->pending, err);
}

static pons_status run_wait(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const half *h = kernel->state;
    pons_status status = h->collective->wait(h->collective->context, *h->pending, err);

    if (status == PONS_OK)
        take_over(h, call);
    return status;
}

static void half_free(pons_kernel *kernel)
{
    free(kernel->state);
}

pons_status collective_prepare(program *p, const pons_request *r, pons_kernel *k, pons_error *err)
{
    const pons_all_reduce_attributes *a = r->attributes;
    half *h;

    if (!p->device.facts.host_memory)
        return pons_fail(err, PONS_DEVICE, "the device '%s' cannot sum over replicas: its memory "
                         "is not host memory", p->device.facts.name);
    h = malloc(sizeof *h);
    if (h == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    *h = (half){ p->settings.collective, p->pending + a->index, r->output[0],
                 shape_count(r->output[0].shape), 0 };
    h->size = (size_t)h->count * type_size(h->tensor.type);
    *k = (pons_kernel){ .run = a->part == PONS_ALL_REDUCE_START ? run_start : run_wait,
                        .free = half_free, .state = h, .implementation = "collective", .share = 1 };
    return PONS_OK;
}
