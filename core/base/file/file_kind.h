/*
 * file_kind.h - what a file is that is not what was expected: its format by its first bytes, and
 * how its user makes of it what can be read.
 */
#ifndef CORE_BASE_FILE_FILE_KIND_H
#define CORE_BASE_FILE_FILE_KIND_H

#include <pons/plugin.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum file_use { FILE_WEIGHTS = 0, FILE_VOLUME, FILE_USE_COUNT } file_use;

typedef struct file_kind {
    const char *name;                       /* "a PyTorch file"                                   */
    struct file_advice {
        const char *text;                   /* NULL: none                                         */
        const char *paths;                  /* behind it; NULL: none, "/": the file's folder,     */
                                            /* ".nii": the file and one of that name and ending   */
    } advice[FILE_USE_COUNT];
    bool packable;                          /* the advice holds for gzip of it, too               */
} file_kind;

/* NULL: its first bytes tell nothing. 512 of them are enough for every row. */
const file_kind *file_kind_find(const void *bytes, size_t size);
/* No control character but blanks and line breaks; an empty file is none. */
bool file_kind_is_text(const void *bytes, size_t size);
/*
 * PONS_DATA: 'path' is 'packed' ("", "gzip of ") and the kind, expected another; with the advice
 * for that use.
 */
pons_status file_kind_refuse(const file_kind *k, const char *path, const char *packed,
                             file_use use, pons_error *err);
/*
 * The same of the first file of a folder that a command converts; PONS_OK: there is none, or a file
 * is named as expected.
 */
pons_status file_kind_refuse_folder(const char *folder, file_use use, pons_error *err);

#endif
