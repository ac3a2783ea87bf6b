/*
 * volume_files.h - the volumes of a folder, for commands that accept a folder.
 */
#ifndef CORE_DATA_VOLUME_VOLUME_FILES_H
#define CORE_DATA_VOLUME_VOLUME_FILES_H

#include "base/arena.h"
#include "base/file/file_kind.h"

#include <pons/plugin.h>
#include <stdbool.h>

/* True if the name ends in .nii, .nii.gz or the ending of a picture. */
bool volume_file_has_suffix(const char *path);
/* The file's name without folders and without such an ending, or that of 'use'. */
const char *volume_file_stem(arena *memory, const char *path);
const char *volume_file_stem_of(arena *memory, const char *path, file_use use);

typedef struct volume_file {
    const char *stem, *path;
} volume_file;

/*
 * The volumes of a folder, sorted by stem, without hidden files. PONS_DATA: there is none, or two
 * have the same stem.
 */
pons_status volume_files_list(arena *memory, const char *folder, volume_file **out, int *count,
                              pons_error *err);
/*
 * The files of a folder with an ending of 'use': FILE_VOLUME has pictures, too. Equal stems are in
 * order of their paths. PONS_DATA: there is none.
 */
pons_status volume_files_list_of(arena *memory, const char *folder, file_use use,
                                 volume_file **out, int *count, pons_error *err);
/* PONS_DATA: two of these sorted files have the same stem. */
pons_status volume_files_refuse_equal(const volume_file *list, int count, pons_error *err);

#endif
