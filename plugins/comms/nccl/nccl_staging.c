/*
 * nccl_staging.c - staging of host buffers. NCCL needs memory of the GPU, but agreements and counts
 * of validations lie in memory of the host. Such a buffer goes through pinned memory and memory of
 * the GPU, on the stream and in its order.
 */
#include "comms/nccl/nccl_internal.h"

#include <string.h>

#include "base/integer.h"

bool nccl_staging_unneeded(const nccl_comm *c, const void *memory)
{
    CUmemorytype type = 0;

    return memory == NULL
           || (c->driver.pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                           (CUdeviceptr)(uintptr_t)memory) == CUDA_SUCCESS
               && type == CU_MEMORYTYPE_DEVICE);
}

void nccl_staging_free(const nccl_comm *c, nccl_staging *s)
{
    if (s->host != NULL)
        c->driver.host_free(s->host);
    if (s->device != 0)
        c->driver.device_free(s->device);
    s->host = NULL;
    s->device = 0;
    s->room = 0;
}

static pons_status make_room(const nccl_comm *c, nccl_staging *s, size_t size, pons_error *err)
{
    void *host = NULL;

    if (s->room >= size)
        return PONS_OK;
    nccl_staging_free(c, s);
    if (nccl_driver_check(&c->driver, c->driver.host_new(&host, size, 0),
                          "no pinned memory for a collective", err) != PONS_OK)
        return err->status;
    s->host = host;
    if (nccl_driver_check(&c->driver, c->driver.device_new(&s->device, size),
                          "no memory on the GPU for a collective", err) != PONS_OK)
        return err->status;
    s->room = size;
    return PONS_OK;
}

pons_status nccl_staging_fill(const nccl_comm *c, nccl_staging *s, const void *from, void *to,
                              pons_error *err)
{
    size_t in = s->in.at + s->in.size, out = s->out.at + s->out.size;

    if (make_room(c, s, max_size(in, out), err) != PONS_OK)
        return err->status;
    s->user = to;
    memcpy(s->host + s->in.at, from, s->in.size);
    return PONS_OK;
}

CUresult nccl_staging_send(const nccl_comm *c, const nccl_staging *s)
{
    return c->driver.copy_to_device(s->device + s->in.at, s->host + s->in.at, s->in.size,
                                    c->stream);
}

CUresult nccl_staging_fetch(const nccl_comm *c, const nccl_staging *s)
{
    return c->driver.copy_to_host(s->host + s->out.at, s->device + s->out.at, s->out.size,
                                  c->stream);
}

void nccl_staging_empty(const nccl_staging *s)
{
    memcpy(s->user, s->host + s->out.at, s->out.size);
}
