/*
 * device_case_layout.h - where preprocessed cases lie in the one piece of memory that a device
 * holds of them, so that it can cut patches itself (PONS_KERNEL_PATCH).
 */
#ifndef CORE_DATA_LOADER_DEVICE_CASE_LAYOUT_H
#define CORE_DATA_LOADER_DEVICE_CASE_LAYOUT_H

#include "data/loader/loader.h"

/* In units of PONS_PATCH_UNIT bytes; as rows of PONS_KERNEL_PATCH have it. */
typedef struct case_place {
    int32_t values, table, code_size, target;
} case_place;

struct case_layout {
    size_t size;               /* bytes of all of them                                            */
    int count;
    int *rank;                 /* [count]                                                         */
    case_place *place;         /* [count]                                                         */
};

/* Cases that the cache holds; PONS_DEVICE for one that it does not hold, or that is too large. */
pons_status case_layout_make(const cache *held, int count, const int *ranks, case_layout *out,
                             pons_error *err);
void case_layout_clear(case_layout *l);
case_place case_layout_of(const case_layout *l, int rank);

/* Bring 'size' bytes to 'offset'. */
typedef pons_status case_layout_put(void *context, size_t offset, const void *from, size_t size,
                                    pons_error *err);
/* All bytes, piece by piece. */
pons_status case_layout_fill(const case_layout *l, const cache *held, case_layout_put *put,
                             void *context, pons_error *err);

#endif
