/*
 * cache_keep.h - cases that stay in memory from one cache to the next, as between folds.
 *
 * A case is found by its key (cache_key.h), so a changed file or step never yields a kept one. A
 * cache takes cases out when it is opened and puts them back when it is closed.
 */
#ifndef CORE_DATA_CACHE_CACHE_KEEP_H
#define CORE_DATA_CACHE_CACHE_KEEP_H

#include "data/packed/packed_case.h"
#include "data/packed/packed_case_file.h"

typedef struct cache_keep cache_keep;

cache_keep *cache_keep_new(void); /* NULL: no memory                                              */
void cache_keep_free(cache_keep *k);

/*
 * Take a case out; false: there is none. The caller owns it and *note, the malloc'ed warnings of
 * its preprocessing. Thread-safe.
 */
bool cache_keep_take(cache_keep *k, const char *key, packed_case *out, char **note);
/* Put a case in memory of its own in, with its warnings. Both are taken; without memory, freed. */
void cache_keep_put(cache_keep *k, const char *key, packed_case *p, char *note);

#endif
