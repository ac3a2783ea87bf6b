/*
 * file.h - read whole files; write files that are complete or absent.
 */
#ifndef CORE_BASE_FILE_H
#define CORE_BASE_FILE_H

#include <pons/plugin.h>
#include <stdbool.h>
#include <stdio.h>

/* Read a regular file of at most 'limit' bytes; *data is malloc'ed, one NUL is appended. */
pons_status file_read(const char *path, size_t limit, char **data, size_t *size, pons_status kind,
                      pons_error *err);
/* Create 'path' and its parents; an existing folder is fine. */
pons_status folder_make(const char *path, pons_error *err);
/*
 * Lock an open file or folder (LOCK_EX, LOCK_SH) until it is closed; false: another process has it,
 * and keeps it for a second.
 */
bool file_lock(int file, int how);
/* A folder, also through a link. */
bool folder_is_there(const char *path);
/* Both are there and are one file, whatever the paths look like. */
bool file_is(const char *path, const char *other);
/* Whether the open file or folder is still what lies at 'path'. */
bool file_is_at(int file, const char *path);

/* A file written under a temporary name in the same folder; commit: flush, sync, rename, sync the
 * folder. discard (or a failed commit) removes the temporary and leaves what was there.
 * open removes the temporaries of this path that killed processes have left. */
typedef struct safe_file {
    FILE *file;
    char *path, *temporary;
} safe_file;

pons_status safe_file_open(safe_file *f, const char *path, pons_error *err);
pons_status safe_file_write(safe_file *f, const void *data, size_t size, pons_error *err);
pons_status safe_file_commit(safe_file *f, pons_error *err);
void safe_file_discard(safe_file *f);

#endif
