/*
 * staging.c - copies between memory of the host and of a device.
 */
#include "graph/storage/staging.h"

#include <string.h>

#include "graph/storage/device_stream.h"

pons_status staging_wait(const device *d, pons_error *err)
{
    if (d->operations->streams.synchronize == NULL)
        return PONS_OK;
    return plugin_status(d->operations->streams.synchronize(d->handle, err), "the device",
                         "streams.synchronize", err);
}

static pons_status allocate_staging(const device *d, size_t size, staging *m, pons_error *err)
{
    m->device = d->operations->memory.allocate(d->handle, size, err);
    m->host = m->device != NULL && !d->facts.host_memory
            ? d->operations->memory.allocate_host(d->handle, size, err) : m->device;
    if (m->host != NULL)
        return PONS_OK;
    if (m->device != NULL)
        d->operations->memory.release(d->handle, m->device, size);
    return pons_fail(err, PONS_DEVICE, "cannot allocate %zu bytes on the device", size);
}

pons_status staging_new(const device *d, size_t size, staging *out, pons_error *err)
{
    staging m = { .size = size };

    *out = (staging){ .size = 0 };
    if (size == 0)
        return PONS_OK;
    if (allocate_staging(d, size, &m, err) != PONS_OK)
        return PONS_DEVICE;
    if (m.host != m.device)
        memset(m.host, 0, size);
    *out = m;
    return PONS_OK;
}

void staging_free(const device *d, staging *m)
{
    if (m->host != m->device)
        d->operations->memory.release_host(d->handle, m->host, m->size);
    if (m->device != NULL)
        d->operations->memory.release(d->handle, m->device, m->size);
    *m = (staging){ .size = 0 };
}

pons_status staging_read(const device *d, void *to, const void *from, size_t size, pons_error *err)
{
    if (!d->facts.host_memory && size > 0
        && stream_copy(d, PONS_STREAM_KERNELS, to, from, size, err) != PONS_OK)
        return PONS_DEVICE;
    if (staging_wait(d, err) != PONS_OK)
        return PONS_DEVICE;
    if (d->facts.host_memory && to != from)
        memcpy(to, from, size);
    return PONS_OK;
}

pons_status staging_write(const device *d, void *to, const void *from, size_t size,
                          pons_error *err)
{
    if (!d->facts.host_memory)
        return size == 0 || stream_copy(d, PONS_STREAM_KERNELS, to, from, size, err) == PONS_OK
             ? staging_wait(d, err) : PONS_DEVICE;
    if (to != from)
        memcpy(to, from, size);
    return PONS_OK;
}

pons_status staging_push(const device *d, const staging *m, pons_error *err)
{
    return m->host != m->device ? staging_write(d, m->device, m->host, m->size, err) : PONS_OK;
}

pons_status staging_pull(const device *d, const staging *m, pons_error *err)
{
    return m->host != m->device ? staging_read(d, m->host, m->device, m->size, err) : PONS_OK;
}
