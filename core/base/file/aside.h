/*
 * aside.h - set a file or folder aside: rename it where it is in the way and must not be lost.
 */
#ifndef CORE_BASE_FILE_ASIDE_H
#define CORE_BASE_FILE_ASIDE_H

#include <pons/plugin.h>

/*
 * Rename 'from' to PATH ENDING, or to PATH ENDING.2, .3, ...: the first free name. *name is the
 * malloc'ed new name; 'name' may be NULL.
 */
pons_status aside_move(const char *from, const char *path, const char *ending, char **name,
                       pons_error *err);

#endif
