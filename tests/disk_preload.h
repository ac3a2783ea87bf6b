/*
 * disk_preload.h - programs that a test starts meet a disk that fails or is slow (disk_shim.h).
 */
#ifndef TESTS_DISK_PRELOAD_H
#define TESTS_DISK_PRELOAD_H

#include "asserts.h"

#include <stdlib.h>

/*
 * "PATH CALL NUMBER ERROR SHORTEN DELAY_MS", and the file that a call waits for, or NULL. A 'fault'
 * of NULL: a disk like any other. Asked for in the build folder first.
 */
static inline void preload_disk(const char *fault, const char *gate)
{
    char library[4096];

    unsetenv("LD_PRELOAD");
    unsetenv("DISK_GATE");
    if (fault == NULL)
        return;
    ck_assert_ptr_nonnull(realpath("tests/plugins/.libs/disk_shim.so", library));
    setenv("LD_PRELOAD", library, 1);
    setenv("DISK_SHIM", fault, 1);
    if (gate != NULL)
        setenv("DISK_GATE", gate, 1);
}

#endif
