/*
 * cache_lmdb.h - the file of preprocessed cases of the cache kind lmdb, one for all cases.
 *
 * A key is that of cache_key.h, its value the content of a file of a packed case, so that it has
 * checksums. A second record of a case, "used:" and its key, has the time of its last use in
 * seconds since 1970 as int64_t.
 */
#ifndef CORE_DATA_CACHE_CACHE_LMDB_H
#define CORE_DATA_CACHE_CACHE_LMDB_H

#include <pons/plugin.h>
#include <stddef.h>

#define CACHE_LMDB_USED "used:"

/*
 * LMDB trusts the pages of its file, and a damaged one can end the process. This check walks all of
 * them in a child process. With 'alone' no other process uses the file, and an insertion is tried,
 * too, and taken back. PONS_DATA: the file is damaged, and 'err' says how. PONS_FAILURE: it cannot
 * be opened.
 */
pons_status cache_lmdb_check(const char *path, bool alone, pons_error *err);

#endif
