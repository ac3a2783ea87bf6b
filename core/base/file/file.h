/*
 * file.h - read whole files; write files that are complete or absent.
 */
#ifndef CORE_BASE_FILE_FILE_H
#define CORE_BASE_FILE_FILE_H

#include <pons/plugin.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Read a regular file of at most 'limit' bytes. *data is malloc'ed and ends with an added NUL.
 * 'kind' is the status of a file that cannot be read.
 */
pons_status file_read(const char *path, size_t limit, char **data, size_t *size, pons_status kind,
                      pons_error *err);
/*
 * Open a regular file for writing; create it if absent. 'flags' is O_WRONLY or O_RDWR, with
 * O_APPEND or O_TRUNC. A link, FIFO or device at 'path' is refused, so that nothing is written
 * elsewhere and open never waits. A failure is PONS_FAILURE.
 */
pons_status file_open(const char *path, int flags, int *file, pons_error *err);
/* The same as a stream; 'mode' is "w", "a" or "a+" as for fopen. */
pons_status file_open_stream(const char *path, const char *mode, FILE **file, pons_error *err);
/* Open a regular file for reading, also through a link; NULL, with errno, on failure. */
FILE *file_open_reader(const char *path);
/* Create 'path' and its parents. An existing folder is no error. */
pons_status folder_make(const char *path, pons_error *err);
/* Create 'path' in an existing folder. An existing folder is no error. */
pons_status folder_make_last(const char *path, pons_error *err);
/* Create the folder of the file 'path', and its parents. */
pons_status folder_make_for(const char *path, pons_error *err);
/*
 * Lock an open file or folder (LOCK_EX, LOCK_SH) until it is closed. Retries for one second; false
 * if another process still has the lock.
 */
bool file_lock(int file, int how);
/* Whether 'path' is a folder or a link to one. */
bool folder_is_there(const char *path);
/* Whether there is a 'folder/name' of any kind. */
bool folder_holds(const char *folder, const char *name);
/* The identity of a file. Two paths with equal identities name one file. */
typedef struct file_identity {
    uint64_t device, inode;
} file_identity;

/* Find the identity of the file at 'path'; false where there is none. */
bool file_identify(const char *path, file_identity *out);
/* Whether both paths exist and name one file. */
bool file_is(const char *path, const char *other);
/* Whether 'path' still names the open file or folder 'file'. */
bool file_is_at(int file, const char *path);

/*
 * A file that is written under a temporary name in its folder.
 *
 * open removes the temporary files of 'path' that killed processes have left. It replaces a link at
 * 'path' instead of following it, and refuses a folder, FIFO or device, also behind a link. commit
 * flushes, syncs, renames and syncs the folder. discard, or a failed commit, removes the temporary
 * file and leaves the old file. The message of a failure names the cause of the first failed write.
 */
typedef struct safe_file {
    FILE *file;               /* may be positioned by fseeko                                      */
    char *path, *temporary;
    bool unsynced;            /* set after open: commit does not sync; folder_sync_files does     */
    struct safe_output *output; /* cookie of the stream 'file'                                    */
} safe_file;

pons_status safe_file_open(safe_file *f, const char *path, pons_error *err);
/* The same without the removal, in a time that does not grow with the files of the folder. */
pons_status safe_file_open_swept(safe_file *f, const char *path, pons_error *err);
/*
 * Remove the temporary files of all files in 'folder' that killed processes have left an hour ago
 * or earlier. Another node's process may be writing a younger one.
 */
void safe_file_sweep(const char *folder);
/* Remove the temporary files of 'path' that killed processes have left, as safe_file_open does. */
void safe_file_sweep_path(const char *path);
pons_status safe_file_write(safe_file *f, const void *data, size_t size, pons_error *err);
pons_status safe_file_commit(safe_file *f, pons_error *err);
void safe_file_discard(safe_file *f);
/* Sync all files of the file system that holds 'folder': once for many unsynced ones. */
pons_status folder_sync_files(const char *folder, pons_error *err);

#endif
