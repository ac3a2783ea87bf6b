/*
 * cache_disk.h - a folder of preprocessed cases, shared by runs and processes.
 *
 * A case is one file, named by its key (cache_key.h); it is complete or absent. The process that
 * makes a file holds the lock of its key; others wait and then map the file. A damaged file is
 * reported, removed and made again. If a file cannot be written, a warning says so, and the case
 * is read each time.
 */
#ifndef CORE_DATA_CACHE_CACHE_DISK_H
#define CORE_DATA_CACHE_CACHE_DISK_H

#include "base/log.h"
#include "data/packed/packed_case_file.h"

typedef struct cache_disk {
    char *folder;
    int lock;                  /* descriptor of the lock file; -1: the folder cannot be written   */
} cache_disk;

/* Open a folder, which is made if missing. */
pons_status cache_disk_open(cache_disk *c, const char *folder, pons_error *err);
void cache_disk_close(cache_disk *c);

/* Map a case; false: there is none. *note is the text stored with it. 'l' may be NULL. */
bool cache_disk_find(const cache_disk *c, const char *key, const char *name, logger *l,
                     packed_case *out, const char **note);
/* Write a case; false: it cannot be written, and 'l' has a warning with the cause. */
bool cache_disk_write(const cache_disk *c, const char *key, const char *name, const packed_case *p,
                      const char *note, logger *l);
/* Lock a key between processes and threads; returns a descriptor for cache_disk_unlock, or -1. */
int cache_disk_lock(const cache_disk *c, const char *key);
void cache_disk_unlock(int descriptor);
/* Remove the least recently used files, down to 'limit' bytes; none used at 'begin' or later. */
void cache_disk_trim(const cache_disk *c, int64_t limit, int64_t begin);

#endif
