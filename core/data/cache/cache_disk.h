/*
 * cache_disk.h - a folder of preprocessed cases, shared by runs and by processes.
 *
 * A case is one file, named by its key (cache_key.h). It is complete or absent; whoever is about to
 * make one holds the lock of its key, others wait and map what he has made. A file that is damaged
 * is reported, removed and made again; a file that cannot be written is reported, and the case is
 * read whenever it is needed.
 */
#ifndef CORE_DATA_CACHE_CACHE_DISK_H
#define CORE_DATA_CACHE_CACHE_DISK_H

#include "base/log.h"
#include "data/packed/packed_case_file.h"

typedef struct cache_disk {
    char *folder;
    int lock;                  /* its file 'lock', or -1 in a folder that cannot be written       */
} cache_disk;

/* Makes the folder. */
pons_status cache_disk_open(cache_disk *c, const char *folder, pons_error *err);
void cache_disk_close(cache_disk *c);

/* Map a case; false: there is none. *note is what was kept with it. 'l' may be NULL. */
bool cache_disk_find(const cache_disk *c, const char *key, const char *name, logger *l,
                     packed_case *out, const char **note);
/* Keep a case; false: it cannot be kept, and 'l' has been told why. */
bool cache_disk_keep(const cache_disk *c, const char *key, const char *name, const packed_case *p,
                     const char *note, logger *l);
/* For one key, between processes and between threads; a descriptor for cache_disk_unlock, or -1. */
int cache_disk_lock(const cache_disk *c, const char *key);
void cache_disk_unlock(int held);
/* Remove the files that were used longest ago, down to 'limit' bytes; none used since 'begin'. */
void cache_disk_trim(const cache_disk *c, int64_t limit, int64_t begin);

#endif
