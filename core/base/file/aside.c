/*
 * aside.c - rename to the first free name without replacing a file.
 */
#include "base/file/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/errno_status.h"

enum { NAMES_MAX = 1000 }; /* names tried */

/* Returns 0 or an errno; EEXIST if 'to' exists. Some file systems lack renameat2's flags. */
static int rename_to_free(const char *from, const char *to)
{
    struct stat facts;

    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
        return errno;
    if (lstat(to, &facts) == 0)
        return EEXIST;
    return rename(from, to) == 0 ? 0 : errno;
}

pons_status aside_move(const char *from, const char *path, const char *ending, char **name,
                       pons_error *err)
{
    char *to = NULL;
    int failed = EEXIST;

    for (int i = 1; i < NAMES_MAX && failed == EEXIST; i++) {
        free(to);
        if (asprintf(&to, i == 1 ? "%s%s" : "%s%s.%d", path, ending, i) < 0)
            return pons_fail(err, PONS_DEVICE, "out of memory for '%s'", path);
        failed = rename_to_free(from, to);
    }
    if (failed == 0 && name != NULL)
        *name = to;
    else
        free(to);
    if (failed != 0)
        return pons_fail(err, errno_status(failed, PONS_FAILURE), "cannot set '%s' aside: %s", from,
                         strerror(failed));
    return PONS_OK;
}
