/*
 * cache_lmdb_absent.c - the cache in one file, in a build without LMDB. The INI file refuses it
 * before.
 */
#include "data/cache/cache_internal.h"

static pons_status refuse_lmdb(cache *c, const cache_settings *s, logger *l, pons_error *err)
{
    (void)c, (void)s, (void)l;
    return pons_fail(err, PONS_CONFIG, "[data] cache = 'lmdb': 'lmdb' is not in this build");
}

const cache_kind cache_kind_lmdb = { .open = refuse_lmdb };
