/*
 * sampling_index.h - the voxels of the sets from which a sampler draws.
 */
#ifndef CORE_DATA_PACKED_SAMPLING_INDEX_H
#define CORE_DATA_PACKED_SAMPLING_INDEX_H

#include "data/packed/packed_case.h"

/* Make the index p->before; a case without a label gets none. */
pons_status sampling_index_make(packed_case *p, const sampling_spec *spec, pons_error *err);

/* The number of voxels of a set, and the n-th of them in row-major order. */
int64_t sampling_index_count(const packed_case *p, int set);
int64_t sampling_index_voxel(const packed_case *p, int set, int64_t n);

#endif
