/*
 * staging.h - device memory with a staging buffer, the pinned host memory through which this
 * process reads and writes it. Both are the same memory if the device computes in host memory.
 */
#ifndef CORE_GRAPH_STORAGE_STAGING_H
#define CORE_GRAPH_STORAGE_STAGING_H

#include "graph/storage/device_handle.h"

typedef struct staging {
    char *device, *host;
    size_t size;
} staging;

/* Allocate both, zeroed. No memory for size 0. */
pons_status staging_new(const device *d, size_t size, staging *out, pons_error *err);
void staging_free(const device *d, staging *m);
/* Copy the host's bytes to the device (push), or back (pull). The copy is complete on return. */
pons_status staging_push(const device *d, const staging *m, pons_error *err);
pons_status staging_pull(const device *d, const staging *m, pons_error *err);

/*
 * Copy between device memory and any host memory. On return the copy and all kernels that were run
 * are complete.
 */
pons_status staging_read(const device *d, void *to, const void *from, size_t size, pons_error *err);
pons_status staging_write(const device *d, void *to, const void *from, size_t size,
                          pons_error *err);
/* Wait for all kernels that were run. */
pons_status staging_wait(const device *d, pons_error *err);

#endif
