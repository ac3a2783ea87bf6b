/*
 * cuda_stream.c - what runs when: a stream for kernels, one for copies, one for a communicator
 * where there is one, and the events between them.
 */
#include "cuda/cuda.h"

#include <stdlib.h>

static pons_status use(cuda_device *d, pons_error *err)
{
    return cuda_check(d, d->driver.use(d->context), "use the card", err);
}

static pons_status new_stream(cuda_device *d, cuda_stream *out, pons_error *err)
{
    return cuda_check(d, d->driver.stream_new(out, CUDA_STREAM_NON_BLOCKING), "make a stream", err);
}

pons_status cuda_queues_open(cuda_device *d, pons_error *err)
{
    for (int i = 0; i < PONS_STREAM_COUNT; i++)
        if (new_stream(d, &d->queue[i], err) != PONS_OK)
            return PONS_DEVICE;
    return PONS_OK;
}

void cuda_queues_close(cuda_device *d)
{
    cuda_timer_close(d);
    for (int i = 0; i < PONS_STREAM_COUNT; i++)
        if (d->queue[i] != NULL)
            d->driver.stream_free(d->queue[i]);
    if (d->sums != NULL)
        d->driver.stream_free(d->sums);
    if (d->behind != NULL)
        d->driver.event_free(d->behind);
    for (int i = 0; i < d->mark_count; i++)
        d->driver.event_free(d->mark[i]);
    free(d->mark);
}

static pons_status new_event(cuda_device *d, cuda_event *out, pons_error *err)
{
    return cuda_check(d, d->driver.event_new(out, CUDA_EVENT_NO_TIMING), "make an event", err);
}

/* Mark 'number' and all before it are there afterwards. */
static pons_status find_mark(cuda_device *d, int number, pons_error *err)
{
    cuda_event *mark;

    if (use(d, err) != PONS_OK)
        return PONS_DEVICE;
    if (number < d->mark_count)
        return PONS_OK;
    mark = realloc(d->mark, (size_t)(number + 1) * sizeof *mark);
    if (mark == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot make an event on device 'cuda:%d': out of "
                         "memory", d->ordinal);
    d->mark = mark;
    for (; d->mark_count <= number; d->mark_count++)
        if (new_event(d, &d->mark[d->mark_count], err) != PONS_OK)
            return PONS_DEVICE;
    return PONS_OK;
}

pons_status cuda_mark(void *device, pons_stream queue, int number, pons_error *err)
{
    cuda_device *d = device;

    if (find_mark(d, number, err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.event_record(d->mark[number], d->queue[queue]), "mark a queue",
                      err);
}

pons_status cuda_follow(void *device, pons_stream queue, int number, pons_error *err)
{
    cuda_device *d = device;

    if (find_mark(d, number, err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.stream_follow(d->queue[queue], d->mark[number], 0),
                      "order queues", err);
}

pons_status cuda_reach(void *device, int number, pons_error *err)
{
    cuda_device *d = device;

    if (find_mark(d, number, err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.event_wait(d->mark[number]), "run kernels", err);
}

pons_status cuda_synchronise(void *device, pons_error *err)
{
    cuda_device *d = device;

    if (use(d, err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.stream_wait(d->queue[PONS_STREAM_KERNELS]), "run kernels", err);
}

void *cuda_sums(void *device, pons_error *err)
{
    cuda_device *d = device;

    if (d->sums == NULL && use(d, err) == PONS_OK)
        new_stream(d, &d->sums, err);
    return d->sums;
}

pons_status cuda_precede(void *device, void *stream, pons_error *err)
{
    cuda_device *d = device;

    if (use(d, err) != PONS_OK || (d->behind == NULL && new_event(d, &d->behind, err) != PONS_OK)
        || cuda_check(d, d->driver.event_record(d->behind, d->queue[PONS_STREAM_KERNELS]),
                      "mark a queue", err) != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.stream_follow(stream, d->behind, 0), "order queues", err);
}
