/*
 * mapped_file.h - map a file for reading, so that the loss of its bytes is an error and does not
 * end the process.
 *
 * A mapping raises SIGBUS where another process truncates the file or the disk fails. From the
 * first mapping on a handler replaces lost bytes by zeros. The reader asks mapped_file_is_whole
 * before it uses what it has read. Any other SIGBUS has its previous action.
 */
#ifndef CORE_BASE_FILE_MAPPED_FILE_H
#define CORE_BASE_FILE_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct mapped_file mapped_file;

/*
 * Map 'size' bytes from 'offset', a multiple of the page size; NULL with errno. 'file' may be
 * closed.
 */
mapped_file *mapped_file_open(int file, off_t offset, size_t size);
/*
 * Handle the loss of 'size' bytes from 'begin' in a mapping of another owner, as of LMDB. They stay
 * mapped until mapped_file_close and after it. NULL: no memory.
 */
mapped_file *mapped_file_watch(void *begin, size_t size);
void mapped_file_close(mapped_file *m); /* accepts NULL */
void *mapped_file_bytes(const mapped_file *m);
/* Whether no byte read so far was lost. The mapping must hold a non-zero byte. Any thread. */
bool mapped_file_is_whole(const mapped_file *m);

#endif
