/*
 * cuda_stream.c - the streams for kernels, copies and a communicator, and the events between them.
 */
#include "cuda/cuda.h"

#include <stdlib.h>

static pons_status use(cuda_device *d, pons_error *err)
{
    return cuda_check(d, d->driver.use(d->context), "use the GPU", err);
}

static pons_status new_stream(cuda_device *d, cuda_stream *out, pons_error *err)
{
    return cuda_check(d, d->driver.stream_new(out, CUDA_STREAM_NON_BLOCKING), "make a stream", err);
}

pons_status cuda_streams_open(cuda_device *d, pons_error *err)
{
    for (int i = 0; i < PONS_STREAM_COUNT; i++)
        if (new_stream(d, &d->stream[i], err) != PONS_OK)
            return PONS_DEVICE;
    return PONS_OK;
}

void cuda_streams_close(cuda_device *d)
{
    cuda_timer_close(d);
    for (int i = 0; i < PONS_STREAM_COUNT; i++)
        if (d->stream[i] != NULL)
            d->driver.stream_free(d->stream[i]);
    if (d->comm_stream != NULL)
        d->driver.stream_free(d->comm_stream);
    if (d->kernels_event != NULL)
        d->driver.event_free(d->kernels_event);
    for (int i = 0; i < d->event_count; i++)
        d->driver.event_free(d->event[i]);
    free(d->event);
}

static pons_status new_event(cuda_device *d, cuda_event *out, pons_error *err)
{
    return cuda_check(d, d->driver.event_new(out, CUDA_EVENT_NO_TIMING), "make an event", err);
}

/* Create the events up to 'number'. */
static pons_status find_event(cuda_device *d, int number, pons_error *err)
{
    cuda_event *event;

    if (use(d, err) != PONS_OK)
        return PONS_DEVICE;
    if (number < d->event_count)
        return PONS_OK;
    event = realloc(d->event, (size_t)(number + 1) * sizeof *event);
    if (event == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot make an event on device 'cuda:%d': out of "
                         "memory", d->ordinal);
    d->event = event;
    for (; d->event_count <= number; d->event_count++)
        if (new_event(d, &d->event[d->event_count], err) != PONS_OK)
            return PONS_DEVICE;
    return PONS_OK;
}

pons_status cuda_event_record(void *device, pons_stream stream, int number, pons_error *err)
{
    cuda_device *d = device;

    if (find_event(d, number, err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.event_record(d->event[number], d->stream[stream]),
                      "record an event", err);
}

pons_status cuda_stream_wait_event(void *device, pons_stream stream, int number, pons_error *err)
{
    cuda_device *d = device;

    if (find_event(d, number, err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.stream_follow(d->stream[stream], d->event[number], 0),
                      "wait for an event", err);
}

pons_status cuda_event_synchronize(void *device, int number, pons_error *err)
{
    cuda_device *d = device;

    if (find_event(d, number, err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.event_wait(d->event[number]), "run kernels", err);
}

pons_status cuda_synchronize(void *device, pons_error *err)
{
    cuda_device *d = device;

    if (use(d, err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.stream_wait(d->stream[PONS_STREAM_KERNELS]), "run kernels", err);
}

void *cuda_comm_stream(void *device, pons_error *err)
{
    cuda_device *d = device;

    if (d->comm_stream == NULL && use(d, err) == PONS_OK)
        new_stream(d, &d->comm_stream, err);
    return d->comm_stream;
}

pons_status cuda_stream_wait_stream(void *device, void *stream, pons_error *err)
{
    cuda_device *d = device;

    if (use(d, err) != PONS_OK || (d->kernels_event == NULL && new_event(d, &d->kernels_event,
                                                                         err) != PONS_OK)
        || cuda_check(d, d->driver.event_record(d->kernels_event, d->stream[PONS_STREAM_KERNELS]),
                      "record an event", err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.stream_follow(stream, d->kernels_event, 0), "wait for an event",
                      err);
}
