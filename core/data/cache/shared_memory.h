/*
 * shared_memory.h - a machine's processes fill a cache together: a board that says who has taken
 * which case and what became of it, and memory that all of them map.
 *
 * The memory has no name: it lives as long as a process has it open or mapped, and is gone with the
 * last one, however that ends.
 */
#ifndef CORE_DATA_CACHE_SHARED_MEMORY_H
#define CORE_DATA_CACHE_SHARED_MEMORY_H

#include "base/hash/hash128.h"
#include "data/packed/packed_case_file.h"
#include "data/cache/cache.h"

#include <stdatomic.h>

/* A text or a case in the memory of one of the processes; size 0: there is none. */
typedef struct cache_piece {
    int64_t offset, size;
} cache_piece;

/* What became of a case; written by the process that has taken it. */
typedef struct cache_entry {
    int process;               /* that one, among those of this machine                           */
    cache_piece packed;        /* as case_file_pack has it                                        */
    cache_piece said;          /* its warnings, where there are several processes                 */
    char key[CASE_KEY_SIZE];   /* not "": the disk cache holds it                                 */
    fingerprint source;        /* case_source; zeros: not known                                   */
} cache_entry;

typedef struct cache_board {
    char token[16];            /* random: this is the memory that its owner speaks of             */
    _Atomic int64_t next;      /* place of the list that is taken next                            */
    _Atomic int64_t done, found; /* cases that were read; that the disk cache held before         */
    _Atomic int64_t size;      /* bytes that are kept                                             */
    _Atomic int64_t failed;    /* place of the earliest failure; the number of cases: none        */
    _Atomic int full;          /* nothing is kept any more                                        */
    cache_entry entry[];       /* by place                                                        */
} cache_board;

typedef struct cache_share {
    int count, self;           /* processes of this machine; 1: nothing is shared                 */
    cache_board *board;
    size_t board_size;         /* of the mapping; 0: memory of this process alone                 */
    int *file;                 /* [count] everybody's memory; NULL: nothing is shared             */
    _Atomic int64_t used;      /* of file[self]                                                   */
} cache_share;

/*
 * For 'count' cases; processes share where they have the same 'mark': files, and how they are kept.
 * 'peers' and 'l' may be NULL. Where processes of a machine cannot share, 'l' is told why.
 */
pons_status cache_share_open(cache_share *s, int count, fingerprint mark,
                             const cache_peers *peers, logger *l, pons_error *err);
/* What has been mapped stays. */
void cache_share_close(cache_share *s);

/* Bytes for all processes, in memory that is there: a write fails where there is none. */
pons_status cache_share_put(cache_share *s, const void *bytes, size_t size, cache_piece *out,
                            pons_error *err);
/* When all have put. */
pons_status cache_share_map(const cache_share *s, const cache_entry *e, packed_case *out,
                            pons_error *err);
/* The warnings of a case as a new text, or NULL. */
char *cache_share_said(const cache_share *s, const cache_entry *e);

#endif
