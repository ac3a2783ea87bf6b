/*
 * device_handle.h - an opened device.
 */
#ifndef CORE_GRAPH_STORAGE_DEVICE_HANDLE_H
#define CORE_GRAPH_STORAGE_DEVICE_HANDLE_H

#include <pons/device.h>

#include "base/integer.h"

/* Bytes. GPU libraries require workspaces at a multiple of it. */
#define MEMORY_ALIGNMENT 256

/* An opened device plugin, or the reference device. */
typedef struct device {
    const struct plugin *plugin; /* NULL: the reference device                                    */
    const pons_device_operations *operations;
    void *handle;
    pons_device_facts facts;
    bool reference;           /* one kernel per node, no fusion                                   */
    /* Reference only: f64 instead of f32. Requests name f64; the program widens f32 nodes. */
    bool wide;
} device;

static inline size_t memory_round(size_t size) /* round up to the alignment */
{
    return round_up_size(size, MEMORY_ALIGNMENT);
}

#endif
