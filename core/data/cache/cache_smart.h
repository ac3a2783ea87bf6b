/*
 * cache_smart.h - a cache of the training cases of an epoch, which replaces cases meanwhile.
 *
 * While an epoch is read, a thread reads the cases that enter with the next epoch. A case leaves
 * when all readers have passed its last epoch. Cases that are not held when a reader wants them are
 * awaited, or read by the reader: time changes no bit.
 *
 * Processes of a machine hold one copy. A turn (case_window.h) is read by one of them.
 */
#ifndef CORE_DATA_CACHE_CACHE_SMART_H
#define CORE_DATA_CACHE_CACHE_SMART_H

#include "data/cache/cache.h"
#include "data/cache/shared_memory.h"

typedef struct cache_smart cache_smart;

/*
 * Begin to replace cases of a filled cache, in its first tier. 'ranks' are those of cache_open.
 * 'memory' is taken over and becomes empty.
 */
pons_status cache_smart_open(cache *c, const int *ranks, shared_memory *memory, pons_error *err);
/* End the thread and clear the cases. NULL is allowed. */
void cache_smart_close(cache_smart *s);

int64_t cache_smart_size(cache_smart *s); /* bytes held                                           */
/* A reader; the number of readers is fixed before the first cache_smart_advance. */
int cache_smart_add_reader(cache_smart *s, int64_t epoch);
/* A reader has passed all epochs before 'epoch'. */
void cache_smart_advance(cache_smart *s, int reader, int64_t epoch);

/*
 * Use the case at a place of the list, after waiting for its reader. False: it is not held, and the
 * caller reads it, or 'err' is set.
 */
bool cache_smart_pin(cache_smart *s, int place, const packed_case **out, pons_error *err);
void cache_smart_unpin(cache_smart *s, int place);

#endif
