/*
 * predict_dataset.c - cases without labels, by the layouts of [data].
 */
#include "cli/predict/predict_dataset.h"

#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/folder_list.h"
#include "data/dataset/layout.h"
#include "data/volume/volume_files.h"

/* Whether a folder has a file for 'use' in itself, not below it. */
static bool holds_files(const char *folder, file_use use)
{
    pons_error ignored = PONS_ERROR_INIT;
    arena *memory = arena_new();
    folder_entry *entry;
    int count = 0;
    bool found = memory == NULL;

    if (memory != NULL && folder_list(memory, folder, &entry, &count, &ignored) != PONS_OK)
        count = 0;
    for (int i = 0; i < count; i++)
        found = found || file_kind_ending(entry[i].name, use) > 0
                || (use == FILE_VOLUME && volume_file_has_suffix(entry[i].name));
    arena_free(memory);
    return found;
}

bool predict_dataset_is(const char *argument, file_use use)
{
    if (access(argument, F_OK) != 0)
        return strchr(argument, '*') != NULL;
    return folder_is_there(argument) ? !holds_files(argument, use) : layout_lists_cases(argument);
}

/* Split "a,b" at its commas. */
static pons_texts split_patterns(arena *memory, const char *argument)
{
    char *copy = arena_string(memory, argument);
    const char **item = arena_alloc(memory, (strlen(argument) + 1) * sizeof *item);
    pons_texts list = { 0, item };

    for (char *word = strtok(copy, ","); word != NULL; word = strtok(NULL, ","))
        item[list.count++] = word;
    return list;
}

static pons_status open_cases(const char *argument, const predict_dataset_needs *needs, bool tests,
                              dataset **out, pons_error *err)
{
    arena *memory = arena_new();
    dataset_settings settings = { .labels_optional = true, .every_case = true, .tests = tests,
                                  .keep_problems = true, .target = needs->target,
                                  .channels_optional = needs->channels_optional };
    dataset *d = NULL;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (access(argument, F_OK) == 0)
        settings.source = argument;
    else
        settings.image = split_patterns(memory, argument);
    if (needs->slides != NULL && layout_slides_is(argument)) {
        settings.layout = "slides";
        settings.slide = *needs->slides;
    }
    if (dataset_open(&settings, &d, err) == PONS_OK && d->problem_count > 0)
        dataset_problems_fail(d->problem, d->problem_count, "", err);
    arena_free(memory);
    if (err->status != PONS_OK) {
        dataset_close(d);
        return err->status;
    }
    *out = d;
    return PONS_OK;
}

pons_status predict_dataset_open(const char *argument, const predict_dataset_needs *needs,
                                 dataset **out, pons_error *err)
{
    dataset *all = NULL;

    if (needs->split == PREDICT_SPLIT_TEST)
        return open_cases(argument, needs, true, out, err);
    if (open_cases(argument, needs, false, &all, err) != PONS_OK)
        return err->status;
    if (needs->split == PREDICT_SPLIT_ALL || !all->lists_tests) {
        *out = all;
        return PONS_OK;
    }
    dataset_close(all);
    return open_cases(argument, needs, true, out, err);
}
