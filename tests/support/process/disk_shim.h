/*
 * disk_shim.h - a disk that fails or is slow: linked into a test, or preloaded into the program.
 *
 * Calls on paths that contain 'path' are counted, each kind by itself. The 'number'-th call of kind
 * 'call' (0: every one) fails with 'error', writes half of its bytes, or is delayed. Streams of
 * such paths write through the same calls. A preloaded shim reads the fault from the environment:
 *
 *   DISK_SHIM="PATH CALL NUMBER ERROR SHORTEN DELAY_MS"     "/checkpoints fsync 3 5 0 0"
 *   DISK_GATE="FILE"                                        the call waits until the file exists
 *
 * Calls: open (for writing), read (open for reading), mkdir, write, fsync, close, rename.
 *
 * A shim linked into a test calls 'disk_seen' after every call that changed or synced such a path.
 */
#ifndef TESTS_DISK_SHIM_H
#define TESTS_DISK_SHIM_H

#include <stddef.h>

typedef struct disk_fault {
    char path[256];       /* empty: every call passes                                             */
    char call[16];
    int number;
    int error;            /* errno of the failing call; 0: it succeeds                            */
    int shorten;          /* a write stores half of its bytes                                     */
    int delay_ms;
    int count, fired;     /* calls counted; calls that met the fault                              */
    int after_failed_sync;/* fsync calls after a failed one on the descriptor                     */
} disk_fault;

extern disk_fault disk_shim;

typedef enum disk_kind {
    DISK_CREATE, DISK_FOLDER, DISK_WRITE, DISK_SYNC, DISK_RENAME, DISK_EXCHANGE, DISK_REMOVE
} disk_kind;

typedef struct disk_call {
    disk_kind kind;
    const char *path, *to;    /* 'to': of a rename and an exchange                                */
    const void *data;         /* bytes of a write                                                 */
    size_t size;
    long at;
} disk_call;

extern void (*disk_seen)(const disk_call *c);

#endif
