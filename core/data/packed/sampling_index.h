/*
 * sampling_index.h - the voxels of the sets that a sampler draws from.
 */
#ifndef CORE_DATA_PACKED_SAMPLING_INDEX_H
#define CORE_DATA_PACKED_SAMPLING_INDEX_H

#include "data/packed/packed_case.h"

/* Fill p->before; a case without a label gets no sets. */
pons_status packed_set_find(packed_case *p, const packed_wish *wish, pons_error *err);

/* Voxels of a set; the n-th of them in row-major order, n < count. */
int64_t packed_set_size(const packed_case *p, int set);
int64_t packed_set_voxel(const packed_case *p, int set, int64_t n);

#endif
