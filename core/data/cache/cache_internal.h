/*
 * cache_internal.h - the struct of a cache, shared by its files.
 */
#ifndef CORE_DATA_CACHE_CACHE_INTERNAL_H
#define CORE_DATA_CACHE_CACHE_INTERNAL_H

#include "data/cache/cache_disk.h"
#include "data/packed/case_geometry.h"
#include "data/cache/cache.h"

typedef struct cache_slot {
    bool wanted, resident;
    hash128 source;            /* case_hash; zeros: not known                                   */
    packed_case packed;
} cache_slot;

struct cache {
    const dataset *data;
    const pipeline *chain;
    sampling_spec spec;
    case_geometry geometry;    /* of the training cases                                           */
    case_geometry validation;  /* orientations of the validation cases                            */
    cache_slot *slot;          /* [case_count], by rank                                           */
    size_t size;
    int resident;
    bool on_disk;
    cache_disk disk;
};

/* ---- cache.c --------------------------------------------------------------------------------- */
/* Read, preprocess and pack a case; 'l' receives warnings. */
pons_status cache_pack(const cache *c, int rank, logger *l, packed_case *out, pons_error *err);

/* ---- cache_fill.c ---------------------------------------------------------------------------- */
/* Read all cases of the list and hold those that the mode and the limit allow. */
pons_status cache_fill(cache *c, int count, const int *ranks, const cache_settings *s, logger *l,
                       pons_error *err);

#endif
