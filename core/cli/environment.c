/*
 * environment.c - OpenMP reads its environment once, when a device plugin brings it in. The file and
 * the replicas decide about threads (R20), so whatever is set outside is cleared before. And the
 * C library is told to give large blocks back.
 */
#include "cli/command.h"

#include <malloc.h>

#include <stdlib.h>
#include <string.h>

extern char **environ;

static bool is_cleared(const char *entry)
{
    return strncmp(entry, "OMP_", 4) == 0 || strncmp(entry, "GOMP_", 5) == 0 ||
           strncmp(entry, "KMP_", 4) == 0;
}

/* Returns false when there is nothing left to clear. */
static bool clear_one(void)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        char name[256];
        size_t size = strcspn(*entry, "=");
        if (!is_cleared(*entry) || size >= sizeof name)
            continue;
        memcpy(name, *entry, size);
        name[size] = '\0';
        return unsetenv(name) == 0;
    }
    return false;
}

/*
 * Volumes and tensors always get pages of their own. By default glibc raises the limit for that with
 * every large block that is freed, and then keeps the holes that volumes of different extents leave
 * between cached cases: an eighth of the process for twelve cases of 112^3.
 */
#ifdef M_MMAP_THRESHOLD
static void give_large_blocks_back(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}
#else
static void give_large_blocks_back(void)
{
}
#endif

void environment_prepare(void)
{
    give_large_blocks_back();
    while (clear_one())
        continue;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("OMP_DYNAMIC", "false", 1);
}
