/*
 * owner.h - check that only trusted users can change a plugin file.
 */
#ifndef CORE_PLUGIN_OWNER_H
#define CORE_PLUGIN_OWNER_H

#include <pons/plugin.h>
#include <sys/stat.h>

/*
 * Check the file at 'path' (absolute, without links) with its 'facts', and every folder above it.
 * Each belongs to root, to the effective user or to the owner of the running program. None is
 * writable by everybody. A folder with the sticky bit is an exception: entries of trusted users
 * cannot be replaced there. A folder of the effective user is writable by no other group than its
 * effective one.
 */
pons_status owner_check(const char *path, const struct stat *facts, pons_error *err);

#endif
