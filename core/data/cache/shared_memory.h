/*
 * shared_memory.h - memory with which the processes of a machine fill one cache.
 *
 * The board lists which process has taken which case, and the result. Packed cases and warnings
 * lie in anonymous memory files of the processes. Such a file exists as long as a process has it
 * open or mapped, so it vanishes with the last process, also after a crash.
 */
#ifndef CORE_DATA_CACHE_SHARED_MEMORY_H
#define CORE_DATA_CACHE_SHARED_MEMORY_H

#include "base/hash/hash128.h"
#include "data/packed/packed_case_file.h"
#include "data/cache/cache.h"

#include <stdatomic.h>

/* A text or a case in the memory of a process; size 0: none. */
typedef struct shared_piece {
    int64_t offset, size;
} shared_piece;

/* The result of a case, written by the process that read it. */
typedef struct shared_case {
    int process;               /* that one, among those of this machine                           */
    int tier;                  /* the tier that holds it, if one does                             */
    shared_piece packed;       /* as packed_case_file_make has it                                 */
    shared_piece warnings;     /* its warnings, where there are several processes                 */
    char key[CASE_KEY_SIZE];   /* not "": the disk cache holds it                                 */
    hash128 source;            /* case_hash; zeros: not known                                   */
    /* a smart cache's: the turn whose case is here + 1, 0: none, and a pons_error of reading it */
    _Atomic int64_t ready;
    shared_piece failure;
} shared_case;

typedef struct shared_counters {
    char token[16];            /* random; proves that an opened memory is the announced one       */
    _Atomic int64_t next;      /* position of the list that is taken next                         */
    _Atomic int64_t done, found; /* cases that were read; cases found in the disk cache           */
    _Atomic int64_t size[CACHE_TIERS_MAX]; /* bytes of held cases by tier                         */
    _Atomic int64_t failed;    /* position of the earliest failure; number of cases: none         */
    _Atomic int tier;          /* the first tier that has room; their number: no case is held     */
    _Atomic uint32_t changes;  /* of 'ready' and of passed turns: a futex                         */
    shared_case entry[];       /* by position in the list                                         */
} shared_counters;

typedef struct shared_memory {
    int count, self;           /* processes of this machine, this one; count 1: not shared        */
    shared_counters *shared;
    size_t board_size;         /* size of the mapping; 0: private memory                          */
    _Atomic int64_t *passed;   /* [count] on the board: the turns that each process has passed    */
    int *file;                 /* [count] descriptors; NULL: not shared                           */
    _Atomic int64_t used;      /* bytes used of file[self]                                        */
} shared_memory;

/*
 * Open the board for 'count' cases. Processes share it if their 'id' is equal. 'peers' and 'l'
 * may be NULL. If processes of a machine cannot share, 'l' receives a warning.
 */
pons_status shared_memory_open(shared_memory *s, int count, hash128 id,
                               const cache_peers *peers, logger *l, pons_error *err);
/* Close it; mapped cases stay valid. */
void shared_memory_close(shared_memory *s);

/* Write bytes for all processes. Pages are allocated by the write, which fails without memory. */
pons_status shared_memory_put(shared_memory *s, const void *bytes, size_t size, shared_piece *out,
                              pons_error *err);
/* Free the pages of bytes that this process wrote. No process may read them afterwards. */
void shared_memory_free(const shared_memory *s, const shared_piece *piece);
/* Read the bytes of a piece that a process wrote; false: they are gone. */
bool shared_memory_get(const shared_memory *s, int process, const shared_piece *piece, void *out);
/* Map a case after all processes have written theirs. */
pons_status shared_memory_map(const shared_memory *s, const shared_case *e, packed_case *out,
                              pons_error *err);
/* The warnings of a case as a new text; NULL: none. */
char *shared_memory_warnings(const shared_memory *s, const shared_case *e);

#endif
