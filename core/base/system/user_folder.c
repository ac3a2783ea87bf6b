/*
 * user_folder.c - the user's cache folder, by XDG_CACHE_HOME or HOME.
 */
#include "base/system/user_folder.h"

#include <stdlib.h>

const char *user_cache_folder(arena *a, const char *name)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache != NULL && cache[0] == '/')
        return arena_format(a, "%s/pons/%s", cache, name);
    if (home != NULL && home[0] == '/')
        return arena_format(a, "%s/.cache/pons/%s", home, name);
    return NULL;
}
