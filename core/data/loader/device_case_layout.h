/*
 * device_case_layout.h - offsets of packed cases in one buffer of a device, which extracts patches
 * itself (PONS_KERNEL_PATCH).
 */
#ifndef CORE_DATA_LOADER_DEVICE_CASE_LAYOUT_H
#define CORE_DATA_LOADER_DEVICE_CASE_LAYOUT_H

#include "data/loader/loader.h"

/* Offsets of a case in units of PONS_PATCH_UNIT bytes, as in rows of PONS_KERNEL_PATCH. */
typedef struct device_case_offsets {
    int32_t values, table, code_size, target;
} device_case_offsets;

struct device_case_layout {
    size_t size;               /* bytes of all cases                                              */
    int count;
    int *rank;                 /* [count]                                                         */
    device_case_offsets *offsets;         /* [count]                                              */
};

/* Lay out cases of a cache. PONS_DEVICE: a case is not held, or too large. */
pons_status device_case_layout_make(const cache *cases, int count, const int *ranks,
                                    device_case_layout *out, pons_error *err);
void device_case_layout_clear(device_case_layout *l);
device_case_offsets device_case_layout_find(const device_case_layout *l, int rank);

/* Copy 'size' bytes to 'offset' of the buffer. */
typedef pons_status device_case_layout_writer(void *context, size_t offset, const void *from,
                                              size_t size, pons_error *err);
/*
 * Copy all cases, array by array. With 'complement' a target t is written as 255 - t, so that the 0
 * of what lies beyond a case stands for TARGET_IGNORED.
 */
pons_status device_case_layout_copy(const device_case_layout *l, const cache *cases,
                                    bool complement, device_case_layout_writer *write,
                                    void *context, pons_error *err);

#endif
