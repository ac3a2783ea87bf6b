/*
 * folder_list.h - the files and folders of a folder, sorted by name.
 */
#ifndef CORE_BASE_FILE_FOLDER_LIST_H
#define CORE_BASE_FILE_FOLDER_LIST_H

#include "base/arena.h"

#include <pons/plugin.h>
#include <stdbool.h>

typedef struct folder_entry {
    const char *name, *path;   /* 'path' begins with the folder                                   */
    bool folder;               /* a folder, or a link to one                                      */
} folder_entry;

/*
 * List the entries without a leading dot, sorted by bytes of their names. The status is PONS_DATA
 * if the folder cannot be read.
 */
pons_status folder_list(arena *memory, const char *folder, folder_entry **out, int *count,
                        pons_error *err);
/* Whether one of the entries is as asked; false if the folder cannot be read. */
bool folder_has(const char *folder, bool (*is)(const folder_entry *entry));

#endif
