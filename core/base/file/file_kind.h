/*
 * file_kind.h - recognise the format of an unexpected file by its first bytes, and advise how to
 * convert it.
 */
#ifndef CORE_BASE_FILE_FILE_KIND_H
#define CORE_BASE_FILE_FILE_KIND_H

#include <pons/plugin.h>
#include <stdbool.h>
#include <stddef.h>

/* The files of weights that are read, in messages. */
#define FILE_WEIGHTS_NAME "weights as safetensors, or as torch.save writes them"

typedef enum file_use { FILE_WEIGHTS = 0, FILE_VOLUME, FILE_PICTURE, FILE_SLIDE,
                        FILE_USE_COUNT } file_use;

typedef struct file_kind {
    const char *name;                       /* "a PyTorch file"                                   */
    struct file_advice {
        const char *text;                   /* hint; NULL: none                                   */
        /*
         * Arguments added to the hint; NULL: none; "/": its folder; ".nii": it and a new .nii file.
         */
        const char *paths;
    } advice[FILE_USE_COUNT];
    bool packable;                          /* the advice also holds for the gzip file            */
} file_kind;

/*
 * The size of the ending that a file name has for 'use', such as 7 for ".nii.gz"; 0: it has none.
 * Endings of pictures and slides are also written in capitals.
 */
size_t file_kind_ending(const char *name, file_use use);
/* The format of 'bytes'; NULL if unknown. The first 512 bytes decide every row. */
const file_kind *file_kind_find(const void *bytes, size_t size);
/* Whether 'bytes' has no control character but blanks and line breaks; false for an empty file. */
bool file_kind_is_text(const void *bytes, size_t size);
/*
 * Fail with PONS_DATA: 'path' is PACKED KIND instead of the expected format, with the advice for
 * 'use'. 'packed' is "" or "gzip of ".
 */
pons_status file_kind_refuse(const file_kind *k, const char *path, const char *packed,
                             file_use use, pons_error *err);
/*
 * The same for the first convertible file of a folder. PONS_OK if there is none, or if a file name
 * is as expected.
 */
pons_status file_kind_refuse_folder(const char *folder, file_use use, pons_error *err);

#endif
