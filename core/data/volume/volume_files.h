/*
 * volume_files.h - the volumes that lie in a folder, for commands that take a folder of them.
 */
#ifndef CORE_DATA_VOLUME_VOLUME_FILES_H
#define CORE_DATA_VOLUME_VOLUME_FILES_H

#include "base/arena.h"

#include <pons/plugin.h>
#include <stdbool.h>

/* Its name ends in .nii or .nii.gz. */
bool volume_file_named(const char *path);
/* The file's name without folders, .nii, .nii.gz. */
const char *volume_file_stem(arena *memory, const char *path);

typedef struct volume_file {
    const char *stem, *path;
} volume_file;

/*
 * The volumes of a folder by their stems, sorted; hidden files are left out. PONS_DATA where there
 * is none, or two have one stem.
 */
pons_status volume_files_list(arena *memory, const char *folder, volume_file **out, int *count,
                              pons_error *err);

#endif
