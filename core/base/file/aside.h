/*
 * aside.h - another name for a file or folder that is in the way and must not be lost.
 */
#ifndef CORE_BASE_FILE_ASIDE_H
#define CORE_BASE_FILE_ASIDE_H

#include <pons/plugin.h>

/*
 * Rename 'from' to 'path' with 'ending' behind it, or with '.2', '.3', ... behind that: the first
 * name that is free. *name (malloc'ed; 'name' may be NULL) is that name.
 */
pons_status aside_move(const char *from, const char *path, const char *ending, char **name,
                       pons_error *err);

#endif
