/*
 * volume_files.c - names of volume files, and the volumes of a folder.
 */
#include "data/volume/volume_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/errno_status.h"
#include "base/file/file_kind.h"

static size_t ending_size(const char *path, file_use use)
{
    size_t size = file_kind_ending(path, use);

    return size > 0 || use != FILE_VOLUME ? size : file_kind_ending(path, FILE_PICTURE);
}

bool volume_file_has_suffix(const char *path)
{
    return ending_size(path, FILE_VOLUME) > 0;
}

const char *volume_file_stem(arena *memory, const char *path)
{
    return volume_file_stem_of(memory, path, FILE_VOLUME);
}

const char *volume_file_stem_of(arena *memory, const char *path, file_use use)
{
    const char *slash = strrchr(path, '/');
    char *stem = arena_string(memory, slash != NULL ? slash + 1 : path);

    stem[strlen(stem) - ending_size(stem, use)] = '\0';
    return stem;
}

static int compare_stems(const void *a, const void *b)
{
    return strcmp(((const volume_file *)a)->stem, ((const volume_file *)b)->stem);
}

static int compare_files(const void *a, const void *b)
{
    int order = compare_stems(a, b);

    return order != 0 ? order : strcmp(((const volume_file *)a)->path,
                                       ((const volume_file *)b)->path);
}

static void append_file(arena *memory, volume_file **list, int *count, int *room, const char *path,
                        file_use use)
{
    if (*count == *room) {
        volume_file *more = arena_alloc(memory, (size_t)(*room = 2 * *room + 16) * sizeof *more);
        if (*count > 0)
            memcpy(more, *list, (size_t)*count * sizeof *more);
        *list = more;
    }
    (*list)[(*count)++] = (volume_file){ volume_file_stem_of(memory, path, use), path };
}

pons_status volume_files_list(arena *memory, const char *folder, volume_file **out, int *count,
                              pons_error *err)
{
    if (volume_files_list_of(memory, folder, FILE_VOLUME, out, count, err) != PONS_OK)
        return err->status;
    return volume_files_refuse_equal(*out, *count, err);
}

pons_status volume_files_refuse_equal(const volume_file *list, int count, pons_error *err)
{
    for (int i = 1; i < count; i++)
        if (compare_stems(&list[i - 1], &list[i]) == 0)
            return pons_fail(err, PONS_DATA, "'%s' and '%s' are both named '%s', expected one",
                             list[i - 1].path, list[i].path, list[i].stem);
    return PONS_OK;
}

pons_status volume_files_list_of(arena *memory, const char *folder, file_use use,
                                 volume_file **out, int *count, pons_error *err)
{
    struct dirent *entry;
    volume_file *list = NULL;
    int n = 0, room = 0;
    DIR *files = opendir(folder);

    if (files == NULL)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read folder '%s': %s",
                         folder, strerror(errno));
    while ((entry = readdir(files)) != NULL)
        if (entry->d_name[0] != '.' && ending_size(entry->d_name, use) > 0)
            append_file(memory, &list, &n, &room, arena_format(memory, "%s/%s", folder,
                                                               entry->d_name), use);
    closedir(files);
    if (n == 0 && file_kind_refuse_folder(folder, use, err) != PONS_OK)
        return err->status;
    if (n == 0)
        return pons_fail(err, PONS_DATA, "'%s' holds no %s", folder,
                         use == FILE_SLIDE ? "whole-slide image"
                                           : ".nii or .nii.gz file and no picture");
    qsort(list, (size_t)n, sizeof *list, compare_files);
    *out = list;
    *count = n;
    return PONS_OK;
}
