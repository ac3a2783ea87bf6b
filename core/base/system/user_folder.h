/*
 * user_folder.h - where files of this user lie that can be made again at any time.
 */
#ifndef CORE_BASE_SYSTEM_USER_FOLDER_H
#define CORE_BASE_SYSTEM_USER_FOLDER_H

#include "base/arena.h"

/*
 * Folder 'name' of pons in the user's cache: $XDG_CACHE_HOME/pons/NAME, or ~/.cache/pons/NAME where
 * that is not set (XDG Base Directory Specification); it need not exist. NULL: neither is an
 * absolute path. Memory of 'a'. Not while another thread changes the environment.
 */
const char *user_cache_folder(arena *a, const char *name);

#endif
