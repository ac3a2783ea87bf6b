/*
 * device_handle.h - an opened device.
 */
#ifndef CORE_GRAPH_STORAGE_DEVICE_HANDLE_H
#define CORE_GRAPH_STORAGE_DEVICE_HANDLE_H

#include <pons/device.h>

#include "base/integer.h"

/* Bytes. Libraries of GPUs want their workspaces at a multiple of it. */
#define MEMORY_ALIGNMENT 256

/* Operations of a device plugin, or of the reference device. */
typedef struct device {
    const struct plugin *plugin; /* NULL: the reference                                           */
    const pons_device_operations *operations;
    void *handle;
    pons_device_facts facts;
    bool reference;           /* one kernel per node, no fusing                                   */
    bool wide;                /* reference only: f64 instead of f32. Its kernels read and write   */
                              /* the types that requests name: the program makes f32 nodes f64    */
} device;

static inline size_t memory_round(size_t size) /* up to the alignment */
{
    return round_up_size(size, MEMORY_ALIGNMENT);
}

#endif
