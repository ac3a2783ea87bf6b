/*
 * profiler_range.h - named ranges of this thread in the device's profiler.
 */
#ifndef CORE_GRAPH_STORAGE_PROFILER_RANGE_H
#define CORE_GRAPH_STORAGE_PROFILER_RANGE_H

#include "graph/storage/device_handle.h"

static inline void range_begin(const device *d, const char *name)
{
    if (d->operations->profiling.range_begin != NULL)
        d->operations->profiling.range_begin(d->handle, name);
}

static inline void range_end(const device *d)
{
    if (d->operations->profiling.range_end != NULL)
        d->operations->profiling.range_end(d->handle);
}

#endif
