/*
 * cache_hold.h - the loader's way to a preprocessed case as the cache keeps it.
 */
#ifndef CORE_DATA_CACHE_HOLD_H
#define CORE_DATA_CACHE_HOLD_H

#include "data/loader.h"
#include "data/packed_case.h"

/* A case for reading; 'own' was read for this call because the cache does not hold it. */
typedef struct cache_hold {
    const packed_case *packed;
    packed_case own;
} cache_hold;

/* Any thread; between begin and end the case stays. */
pons_status cache_hold_begin(cache *c, int rank, cache_hold *hold, pons_error *err);
void cache_hold_end(cache_hold *hold);
const packed_case *cache_packed(const cache *c, int rank); /* NULL: it is not held                */
const dataset *cache_dataset(const cache *c);
bool cache_knows(const cache *c, int rank); /* one of cache_open's ranks                          */

#endif
