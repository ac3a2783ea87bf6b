/*
 * cache_internal.h - what the files of the cache share.
 */
#ifndef CORE_DATA_CACHE_CACHE_INTERNAL_H
#define CORE_DATA_CACHE_CACHE_INTERNAL_H

#include "data/cache/cache_disk.h"
#include "data/dataset/case_geometry.h"
#include "data/cache/cache.h"

typedef struct cache_slot {
    bool wanted, held;
    fingerprint source;        /* case_source; zeros: not known                                   */
    packed_case packed;
} cache_slot;

struct cache {
    const dataset *data;
    const volume_chain *chain;
    packed_wish wish;
    case_geometry geometry;    /* of the training cases                                           */
    case_geometry validation;  /* orientations of the validation cases                            */
    cache_slot *slot;          /* [case_count], by rank                                           */
    size_t size;
    int held;
    bool on_disk;
    cache_disk disk;
};

/* cache.c */
/* A case after the steps; 'l' is told their warnings. */
pons_status cache_pack(const cache *c, int rank, logger *l, packed_case *out, pons_error *err);

/* cache_fill.c */
/* Read all cases of the list, and keep those that are to be kept. */
pons_status cache_fill(cache *c, int count, const int *ranks, const cache_settings *s, logger *l,
                       pons_error *err);

#endif
