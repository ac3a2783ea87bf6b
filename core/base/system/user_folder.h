/*
 * user_folder.h - the folder of the user's files that can be deleted and made again at any time.
 */
#ifndef CORE_BASE_SYSTEM_USER_FOLDER_H
#define CORE_BASE_SYSTEM_USER_FOLDER_H

#include "base/arena.h"

/*
 * Folder 'name' of pons in the user's cache, in memory of 'a': $XDG_CACHE_HOME/pons/NAME, else
 * ~/.cache/pons/NAME (XDG Base Directory Specification). It need not exist. NULL: neither variable
 * is an absolute path. No other thread may change the environment meanwhile.
 */
const char *user_cache_folder(arena *a, const char *name);

#endif
