/*
 * queue.h - the queues of a device (device.h). A device that fails without words gets some.
 */
#ifndef CORE_GRAPH_STORAGE_QUEUE_H
#define CORE_GRAPH_STORAGE_QUEUE_H

#include "graph/storage/device_handle.h"
#include "plugin/plugin_status.h"

static inline pons_status queue_copy(const device *d, pons_queue queue, void *to, const void *from,
                                     size_t size, pons_error *err)
{
    return plugin_answer(d->operations->copy(d->handle, queue, to, from, size, err), "the device",
                         "copy", err);
}

static inline pons_status queue_mark(const device *d, pons_queue queue, int number,
                                     pons_error *err)
{
    return plugin_answer(d->operations->mark(d->handle, queue, number, err), "the device", "mark",
                         err);
}

static inline pons_status queue_follow(const device *d, pons_queue queue, int number,
                                       pons_error *err)
{
    return plugin_answer(d->operations->follow(d->handle, queue, number, err), "the device",
                         "follow", err);
}

static inline pons_status queue_reach(const device *d, int number, pons_error *err)
{
    return plugin_answer(d->operations->reach(d->handle, number, err), "the device", "reach", err);
}

static inline pons_status queue_precede(const device *d, void *stream, pons_error *err)
{
    return plugin_answer(d->operations->precede(d->handle, stream, err), "the device", "precede",
                         err);
}

#endif
