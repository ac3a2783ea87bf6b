/*
 * profiler_range.h - named ranges of this thread, in its profile and in the device's profiler.
 */
#ifndef CORE_GRAPH_STORAGE_PROFILER_RANGE_H
#define CORE_GRAPH_STORAGE_PROFILER_RANGE_H

#include "base/profile/profile.h"
#include "graph/storage/device_handle.h"

static inline void range_begin(const device *d, range_kind kind, const char *name)
{
    if (d->operations->colored_range_begin != NULL)
        d->operations->colored_range_begin(d->handle, name, range_kind_color(kind));
    else if (d->operations->profiling.range_begin != NULL)
        d->operations->profiling.range_begin(d->handle, name);
    profile_range_begin(kind, name);
}

static inline void range_end(const device *d)
{
    profile_range_end();
    if (d->operations->profiling.range_end != NULL)
        d->operations->profiling.range_end(d->handle);
}

#endif
