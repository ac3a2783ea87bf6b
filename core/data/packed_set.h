/*
 * packed_set.h - count the voxels of the sets a sampler draws from.
 */
#ifndef CORE_DATA_PACKED_SET_H
#define CORE_DATA_PACKED_SET_H

#include "data/packed_case.h"

/* Fill p->before; a case without a label gets no sets. */
pons_status packed_set_find(packed_case *p, const packed_wish *wish, pons_error *err);

#endif
