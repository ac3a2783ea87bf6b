/*
 * mapped_file.h - a file mapped for reading, whose loss is an error and not the end of the process.
 *
 * A file that another process makes shorter while it is mapped, or a disk that fails, is met as
 * SIGBUS. It is answered here, once a file has been mapped: what is gone reads as zeros from then
 * on, and the reader asks mapped_file_is_whole before it uses what it has read. A SIGBUS anywhere
 * else does what it did before.
 */
#ifndef CORE_BASE_FILE_MAPPED_FILE_H
#define CORE_BASE_FILE_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct mapped_file mapped_file;

/* 'size' bytes from 'offset', a multiple of the page; NULL with errno. The file may be closed. */
mapped_file *mapped_file_open(int file, off_t offset, size_t size);
void mapped_file_close(mapped_file *m); /* also NULL */
void *mapped_file_bytes(const mapped_file *m);
/* Nothing that was read so far was gone; any thread. Of a file with a byte that is not 0. */
bool mapped_file_is_whole(const mapped_file *m);

#endif
