/*
 * all_reduce_kernels.c - kernels of all_reduce nodes, which are sums over replicas inside a
 * micro-batch.
 *
 * The start copies its argument, unless both share memory, and starts the sum there; the wait ends
 * it. settings.collective makes the sum. Gradients are no all_reduce nodes: gradient_buckets.c sums
 * them.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/ir/shape.h"
#include "graph/program/program_internal.h"
#include "graph/storage/device_stream.h"

typedef struct half {
    const program_collective *collective;
    device device;
    void **pending;
    pons_tensor tensor;
    int64_t count;
    size_t size;
    /* Buffer of both halves for a sum that is made in host memory; else NULL. */
    char *host;
    bool owner;               /* frees 'host': true in the start                                  */
} half;

static pons_status copy_argument(const half *h, const pons_call *call, pons_error *err)
{
    const device *d = &h->device;

    if (call->output[0] == call->input[0])
        return PONS_OK;
    if (!d->facts.host_memory)
        return stream_copy(d, PONS_STREAM_KERNELS, call->output[0], call->input[0], h->size, err);
    memcpy(call->output[0], call->input[0], h->size);
    return PONS_OK;
}

static pons_status run_start(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const half *h = kernel->state;
    const program_collective *c = h->collective;
    const device *d = &h->device;
    void *buffer = h->host != NULL ? h->host : call->output[0];

    if (h->host != NULL ? staging_read(d, h->host, call->input[0], h->size, err) != PONS_OK
                        : copy_argument(h, call, err) != PONS_OK)
        return err->status;
    if (c->stream != NULL && stream_wait_stream(d, c->stream, err) != PONS_OK)
        return err->status;
    return c->start(c->context, buffer, h->count, h->tensor.type, h->pending, err);
}

static pons_status run_wait(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const half *h = kernel->state;

    if (h->collective->wait(h->collective->context, *h->pending, err) != PONS_OK)
        return err->status;
    return h->host != NULL ? staging_write(&h->device, call->output[0], h->host, h->size, err)
                           : copy_argument(h, call, err);
}

static void half_free(pons_kernel *kernel)
{
    half *h = kernel->state;

    if (h->owner)
        free(h->host);
    free(h);
}

pons_status all_reduce_kernel_prepare(program *p, const pons_request *r, pons_kernel *k,
                                      pons_error *err)
{
    const pons_all_reduce_attributes *a = r->attributes;
    half *h = calloc(1, sizeof *h);

    if (h == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    *h = (half){ .collective = p->settings.collective, .device = p->device,
                 .pending = p->all_reduce.pending + a->index, .tensor = r->output[0],
                 .count = shape_count(r->output[0].shape) };
    h->size = (size_t)h->count * type_size(h->tensor.type);
    h->owner = a->part == PONS_ALL_REDUCE_START;
    if (h->owner && !p->device.facts.host_memory && h->collective->stream == NULL
        && (p->all_reduce.host_buffer[a->index] = malloc(h->size)) == NULL) {
        free(h);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    h->host = p->all_reduce.host_buffer[a->index];
    *k = (pons_kernel){ .run = h->owner ? run_start : run_wait,
                        .free = half_free, .state = h, .implementation = "collective", .share = 1 };
    return PONS_OK;
}
