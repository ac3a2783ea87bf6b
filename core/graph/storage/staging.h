/*
 * staging.h - memory of a device, and the memory by which this process reads and writes it: one and
 * the same where the device computes in host memory.
 */
#ifndef CORE_GRAPH_STORAGE_STAGING_H
#define CORE_GRAPH_STORAGE_STAGING_H

#include "graph/storage/device_handle.h"

typedef struct mirror {
    char *device, *host;
    size_t size;
} mirror;

/* Both zeroed; with size 0 there is none. */
pons_status mirror_new(const device *d, size_t size, mirror *out, pons_error *err);
void mirror_free(const device *d, mirror *m);
/* The host's bytes become the device's (push), or the other way round; done on return. */
pons_status mirror_push(const device *d, const mirror *m, pons_error *err);
pons_status mirror_pull(const device *d, const mirror *m, pons_error *err);

/*
 * Copies with nothing held: between memory of the device and any memory of this process; all
 * kernels that were run have ended on return.
 */
pons_status mirror_read(const device *d, void *to, const void *from, size_t size, pons_error *err);
pons_status mirror_write(const device *d, void *to, const void *from, size_t size,
                         pons_error *err);
/* Until all kernels that were run have ended. */
pons_status mirror_wait(const device *d, pons_error *err);

#endif
