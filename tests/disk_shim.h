/*
 * disk_shim.h - a disk that fails or is slow: linked into a test, or preloaded into the program.
 *
 * Calls on paths that contain 'path' are counted: each kind by itself. The 'number'-th of kind
 * 'call' (0: every one) fails with 'error', writes half of its bytes, or takes its time. Streams of
 * such paths write through the same calls. Preloaded, the fault comes from the environment:
 *
 *   DISK_SHIM="PATH CALL NUMBER ERROR SHORTEN DELAY_MS"     "/checkpoints fsync 3 5 0 0"
 *   DISK_GATE="FILE"                                        takes its time until the file is there
 *
 * Calls: open (for writing), read (open for reading), mkdir, write, fsync, close, rename.
 *
 * Linked into a test, 'disk_seen' is told of every call that has changed or synced such a path.
 */
#ifndef TESTS_DISK_SHIM_H
#define TESTS_DISK_SHIM_H

#include <stddef.h>

typedef struct disk_fault {
    char path[256];       /* empty: every call passes                                             */
    char call[16];
    int number;
    int error;            /* errno; 0: none                                                       */
    int shorten;          /* a write of half the bytes                                            */
    int delay_ms;
    int count, fired;     /* counted so far; how many met the fault                               */
    int after_failed_sync;/* calls of fsync on a descriptor whose fsync has failed                */
} disk_fault;

extern disk_fault disk_shim;

typedef enum disk_kind {
    DISK_CREATE, DISK_FOLDER, DISK_WRITE, DISK_SYNC, DISK_RENAME, DISK_EXCHANGE, DISK_REMOVE
} disk_kind;

typedef struct disk_call {
    disk_kind kind;
    const char *path, *to;    /* 'to' of a rename and an exchange                                 */
    const void *data;         /* of a write                                                       */
    size_t size;
    long at;
} disk_call;

extern void (*disk_seen)(const disk_call *c);

#endif
