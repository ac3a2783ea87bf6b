/*
 * profiler_range.h - a name for what this thread does, in a profiler that looks on.
 */
#ifndef CORE_GRAPH_STORAGE_PROFILER_RANGE_H
#define CORE_GRAPH_STORAGE_PROFILER_RANGE_H

#include "graph/storage/device_handle.h"

static inline void range_begin(const device *d, const char *name)
{
    if (d->operations->begin_range != NULL)
        d->operations->begin_range(d->handle, name);
}

static inline void range_end(const device *d)
{
    if (d->operations->end_range != NULL)
        d->operations->end_range(d->handle);
}

#endif
