/*
 * environment.c - OpenMP reads its environment once, when a device plugin brings it in. The file and
 * the replicas decide about threads (R20), so whatever is set outside is cleared before.
 */
#include "cli/command.h"

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

void environment_prepare(void)
{
    while (clear_one())
        continue;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("OMP_DYNAMIC", "false", 1);
}
