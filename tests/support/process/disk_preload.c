/*
 * disk_preload.c - see disk_preload.h.
 */
#include "support/process/disk_preload.h"

void preload_disk(const char *fault, const char *gate)
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
