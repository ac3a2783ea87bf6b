/*
 * packed_case_file.h - files of packed cases, which are memory-mapped.
 */
#ifndef CORE_DATA_PACKED_PACKED_CASE_FILE_H
#define CORE_DATA_PACKED_PACKED_CASE_FILE_H

#include "data/packed/packed_case.h"

#define CASE_KEY_SIZE 65 /* 64 hexadecimal digits and a NUL */

/* Write a case; the file is complete or absent. 'note' is a text that is stored with the case. */
pons_status packed_case_file_write(const char *path, const char *key, const packed_case *p,
                                   const char *note, pons_error *err);
/*
 * Map a file as memory that processes share, and verify its hashes. packed_case_clear unmaps it;
 * *note points into it. PONS_DATA: the file is truncated, damaged, or of another key or version.
 * PONS_FAILURE: it is absent or cannot be opened.
 */
pons_status packed_case_file_map(const char *path, const char *key, packed_case *p,
                                 const char **note, pons_error *err);
/*
 * Verify such content in a mapping of 'size' bytes and use it. A status other than PONS_OK leaves
 * the mapping to the caller: PONS_DATA with what is wrong, as "its checksum is wrong".
 */
pons_status packed_case_file_use(mapped_file *m, size_t size, const char *key, packed_case *p,
                                 const char **note, pons_error *err);
/* The content of such a file in memory; the caller frees it. */
pons_status packed_case_file_make(const char *key, const packed_case *p, const char *note,
                                  char **out, size_t *size, pons_error *err);
/* Map such content that another process of this run has placed; it is not verified. */
pons_status packed_case_file_map_shared(int fd, int64_t offset, size_t size, packed_case *p,
                                        pons_error *err);
size_t packed_case_file_size(const packed_case *p, const char *note);

#endif
