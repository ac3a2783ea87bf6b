/*
 * nccl_stage.c - buffers of the host. NCCL wants memory of the GPU; what processes agree on, and
 * what they collect of their validations, lies in memory of the host. Such a buffer goes through a
 * pinned one and one of the GPU, on the stream and in order with everything else.
 */
#include "comms/nccl/nccl_comm.h"

#include <string.h>

bool nccl_stage_unneeded(const nccl_comm *c, const void *memory)
{
    CUmemorytype type = 0;

    return memory == NULL
           || (c->driver.pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                           (CUdeviceptr)(uintptr_t)memory) == CUDA_SUCCESS
               && type == CU_MEMORYTYPE_DEVICE);
}

void nccl_stage_free(const nccl_comm *c, nccl_stage *s)
{
    if (s->host != NULL)
        c->driver.host_free(s->host);
    if (s->device != 0)
        c->driver.device_free(s->device);
    s->host = NULL;
    s->device = 0;
    s->room = 0;
}

static pons_status make_room(const nccl_comm *c, nccl_stage *s, size_t size, pons_error *err)
{
    void *host = NULL;

    if (s->room >= size)
        return PONS_OK;
    nccl_stage_free(c, s);
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

pons_status nccl_stage_fill(const nccl_comm *c, nccl_stage *s, const void *from, void *to,
                            pons_error *err)
{
    size_t in = s->in.at + s->in.size, out = s->out.at + s->out.size;

    if (make_room(c, s, in > out ? in : out, err) != PONS_OK)
        return err->status;
    s->user = to;
    memcpy(s->host + s->in.at, from, s->in.size);
    return PONS_OK;
}

CUresult nccl_stage_send(const nccl_comm *c, const nccl_stage *s)
{
    return c->driver.copy_to_device(s->device + s->in.at, s->host + s->in.at, s->in.size,
                                    c->stream);
}

CUresult nccl_stage_fetch(const nccl_comm *c, const nccl_stage *s)
{
    return c->driver.copy_to_host(s->host + s->out.at, s->device + s->out.at, s->out.size,
                                  c->stream);
}

void nccl_stage_empty(const nccl_stage *s)
{
    memcpy(s->user, s->host + s->out.at, s->out.size);
}
