/*
 * device_stream.h - calls of a device's streams and events (device.h). A failure without a message
 * gets one.
 */
#ifndef CORE_GRAPH_STORAGE_DEVICE_STREAM_H
#define CORE_GRAPH_STORAGE_DEVICE_STREAM_H

#include "graph/storage/device_handle.h"
#include "plugin/plugin_status.h"

static inline pons_status stream_copy(const device *d, pons_stream stream, void *to,
                                      const void *from, size_t size, pons_error *err)
{
    return plugin_status(d->operations->memory.copy(d->handle, stream, to, from, size, err),
                         "the device", "memory.copy", err);
}

static inline pons_status event_record(const device *d, pons_stream stream, int number,
                                       pons_error *err)
{
    return plugin_status(d->operations->streams.event_record(d->handle, stream, number, err),
                         "the device", "streams.event_record", err);
}

static inline pons_status stream_wait_event(const device *d, pons_stream stream, int number,
                                            pons_error *err)
{
    return plugin_status(d->operations->streams.stream_wait_event(d->handle, stream, number, err),
                         "the device", "streams.stream_wait_event", err);
}

static inline pons_status event_synchronize(const device *d, int number, pons_error *err)
{
    return plugin_status(d->operations->streams.event_synchronize(d->handle, number, err),
                         "the device", "streams.event_synchronize", err);
}

static inline pons_status stream_wait_stream(const device *d, void *stream, pons_error *err)
{
    return plugin_status(d->operations->streams.stream_wait_stream(d->handle, stream, err),
                         "the device", "streams.stream_wait_stream", err);
}

#endif
