/*
 * file.h - read whole files; write files that are complete or absent.
 */
#ifndef CORE_BASE_FILE_FILE_H
#define CORE_BASE_FILE_FILE_H

#include <pons/plugin.h>
#include <stdbool.h>
#include <stdio.h>

/* Read a regular file of at most 'limit' bytes; *data is malloc'ed, one NUL is appended. */
pons_status file_read(const char *path, size_t limit, char **data, size_t *size, pons_status kind,
                      pons_error *err);
/*
 * Open a regular file for writing, and make it where there is none: flags O_WRONLY or O_RDWR, with
 * O_APPEND, O_TRUNC. A link, a FIFO or a device at 'path' is refused, so that nothing is written
 * elsewhere and no open waits. A failure is PONS_FAILURE.
 */
pons_status file_open(const char *path, int flags, int *file, pons_error *err);
/* The same as a stream; mode "w", "a" or "a+" as for fopen. */
pons_status file_open_stream(const char *path, const char *mode, FILE **file, pons_error *err);
/* A regular file to read, also through a link; NULL, with errno, where it cannot be opened. */
FILE *file_open_reader(const char *path);
/* Create 'path' and its parents; an existing folder is fine. */
pons_status folder_make(const char *path, pons_error *err);
/*
 * Lock an open file or folder (LOCK_EX, LOCK_SH) until it is closed; false: another process has it,
 * and keeps it for a second.
 */
bool file_lock(int file, int how);
/* A folder, also through a link. */
bool folder_is_there(const char *path);
/* The identity of a file. Two paths with equal identities name one file. */
typedef struct file_identity {
    uint64_t device, inode;
} file_identity;

/* Find the identity of the file at 'path'; false where there is none. */
bool file_identify(const char *path, file_identity *out);
/* Both are there and are one file, whatever the paths look like. */
bool file_is(const char *path, const char *other);
/* Whether the open file or folder is still what lies at 'path'. */
bool file_is_at(int file, const char *path);

/*
 * A file written under a temporary name in the same folder; commit: flush, sync, rename, sync the
 * folder. discard (or a failed commit) removes the temporary and leaves what was there.
 * open removes the temporaries of this path that killed processes have left. A link at 'path' is
 * replaced and not followed; a folder, FIFO or device there, also behind a link, is refused.
 * The message of a failure tells the cause of the first write that failed.
 */
typedef struct safe_file {
    FILE *file;
    char *path, *temporary;
    struct safe_output *output; /* behind 'file'                                                  */
} safe_file;

pons_status safe_file_open(safe_file *f, const char *path, pons_error *err);
pons_status safe_file_write(safe_file *f, const void *data, size_t size, pons_error *err);
pons_status safe_file_commit(safe_file *f, pons_error *err);
void safe_file_discard(safe_file *f);

#endif
