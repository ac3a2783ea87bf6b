/*
 * folder_list.c - the files and folders of a folder, sorted by name.
 */
#include "base/file/folder_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/errno_status.h"
#include "base/file/file.h"

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const folder_entry *)a)->name, ((const folder_entry *)b)->name);
}

pons_status folder_list(arena *memory, const char *folder, folder_entry **out, int *count,
                        pons_error *err)
{
    DIR *stream = opendir(folder);
    folder_entry *list = NULL;
    struct dirent *entry;
    int n = 0, room = 0;

    if (stream == NULL)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read folder '%s': %s",
                         folder, strerror(errno));
    while ((entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        if (n == room) {
            folder_entry *more = arena_alloc(memory, (size_t)(room = 2 * room + 16) * sizeof *more);
            if (n > 0)
                memcpy(more, list, (size_t)n * sizeof *more);
            list = more;
        }
        list[n].name = arena_string(memory, entry->d_name);
        list[n].path = arena_format(memory, "%s/%s", folder, entry->d_name);
        list[n].folder = folder_is_there(list[n].path);
        n++;
    }
    closedir(stream);
    if (n > 0)
        qsort(list, (size_t)n, sizeof *list, compare_entries);
    *out = list;
    *count = n;
    return PONS_OK;
}

bool folder_has(const char *folder, bool (*is)(const folder_entry *entry))
{
    pons_error ignored = PONS_ERROR_INIT;
    arena *memory = arena_new();
    folder_entry *entry;
    int count;
    bool found = false;

    if (memory == NULL)
        return false;
    if (folder_list(memory, folder, &entry, &count, &ignored) == PONS_OK)
        for (int i = 0; i < count && !found; i++)
            found = is(&entry[i]);
    arena_free(memory);
    return found;
}
