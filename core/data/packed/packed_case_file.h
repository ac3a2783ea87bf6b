/*
 * packed_case_file.h - a packed case as a file that is mapped, not read.
 */
#ifndef CORE_DATA_PACKED_PACKED_CASE_FILE_H
#define CORE_DATA_PACKED_PACKED_CASE_FILE_H

#include "data/packed/packed_case.h"

#define CASE_KEY_SIZE 65 /* 64 hexadecimal digits and a NUL */

/* Complete or absent. 'note' is a text that is kept beside the case. */
pons_status case_file_write(const char *path, const char *key, const packed_case *p,
                            const char *note, pons_error *err);
/*
 * Map a file, for all processes the same memory, and check every byte of it. The case ends with
 * packed_case_clear; *note points into it. A file that is cut short, damaged, of another key or of
 * another pons is PONS_DATA; one that is absent or may not be opened is PONS_FAILURE.
 */
pons_status case_file_map(const char *path, const char *key, packed_case *p, const char **note,
                          pons_error *err);
/* The bytes of such a file; the caller frees them. */
pons_status case_file_pack(const char *key, const packed_case *p, const char *note, char **out,
                           size_t *size, pons_error *err);
/* Map those bytes where another process of this run has put them; they are trusted. */
pons_status case_file_map_part(int fd, int64_t offset, size_t size, packed_case *p,
                               pons_error *err);
size_t case_file_size(const packed_case *p, const char *note);

#endif
