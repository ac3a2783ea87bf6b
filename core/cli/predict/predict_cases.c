/*
 * predict_cases.c - the cases of the arguments: files, folders, datasets and patterns.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/text/text.h"
#include "cli/predict/predict_dataset.h"
#include "cli/predict/predict_internal.h"
#include "cli/predict/predict_patches.h"
#include "data/reader/volume_read.h"
#include "data/volume/volume_files.h"

static file_use file_use_of(const predict_job *j)
{
    return predict_task_of(j)->maps ? FILE_SLIDE : FILE_VOLUME;
}

/* Add a case with space for its files. */
static const char **new_case(predict_job *j, const char *name, int files)
{
    if (j->case_count == j->case_room) {
        int room = 2 * j->case_room + 16;
        predict_input *more = arena_alloc(j->memory, (size_t)room * sizeof *more);
        if (j->case_count > 0)
            memcpy(more, j->cases, (size_t)j->case_count * sizeof *more);
        j->cases = more;
        j->case_room = room;
    }
    const char **file = arena_alloc(j->memory, (size_t)files * sizeof *file);
    j->cases[j->case_count++] = (predict_input){ .name = name, .file_count = files, .file = file };
    return file;
}

/* The number of files in a list like "a.nii.gz,b.nii.gz"; 1 if a file has that very name. */
static int count_files(const char *list)
{
    int files = 1;

    for (const char *c = list; *c != '\0' && access(list, F_OK) != 0; c++)
        files += *c == ',';
    return files;
}

int predict_count_channels(const char *argument)
{
    pons_error ignored = PONS_ERROR_INIT;
    volume_facts facts;
    int files = count_files(argument);

    if (files > 1 || folder_is_there(argument)
        || volume_read_facts(argument, &facts, &ignored) != PONS_OK)
        return files;
    return facts.channels;
}

size_t predict_channel_stem(const predict_job *j, const char *stem)
{
    size_t size = strlen(stem);

    if (size > 5 && stem[size - 5] == '_' && strspn(stem + size - 4, "0123456789") == 4)
        return size - 5;
    return size;
}

/* The case that a file "CASE_0001.nii.gz" of nnU-Net belongs to; "": the name tells no channel. */
static const char *nnunet_case(predict_job *j, const char *file)
{
    const char *stem = volume_file_stem(j->memory, file);
    size_t size = predict_channel_stem(j, stem);

    if (!predictor_is_nnunet(j->member[0]) || stem[size] == '\0')
        return "";
    return arena_format(j->memory, "%.*s", (int)size, stem);
}

/* Add a file to the case before it if both are channels of one case in one folder. */
static bool add_channel(predict_job *j, const char *path)
{
    const char *name = nnunet_case(j, path), *slash = strrchr(path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - path) : 0;
    predict_input *c = j->case_count > 0 ? &j->cases[j->case_count - 1] : NULL;

    if (c == NULL || name[0] == '\0' || strcmp(name, c->name) != 0
        || strncmp(path, c->file[0], folder + strlen(name)) != 0)
        return false;
    const char **file = arena_alloc(j->memory, ((size_t)c->file_count + 1) * sizeof *file);
    memcpy(file, c->file, (size_t)c->file_count * sizeof *file);
    file[c->file_count++] = path;
    c->file = file;
    return true;
}

/* Add the case whose channels are listed as "a.nii.gz,b.nii.gz". */
static void add_list(predict_job *j, const char *list)
{
    int files = count_files(list);
    char *copy = arena_string(j->memory, list);
    const char **file = new_case(j, "", files);
    predict_input *c = &j->cases[j->case_count - 1];

    c->file_count = 0;
    file[0] = list;
    if (files == 1)
        c->file_count = 1;
    for (char *word = strtok(copy, ","); files > 1 && word != NULL; word = strtok(NULL, ","))
        file[c->file_count++] = word;
    c->name = nnunet_case(j, file[0]);
    if (c->name[0] == '\0')
        c->name = volume_file_stem_of(j->memory, file[0], file_use_of(j));
}

/* Leave out files that tell no channel beside some that do, as the mask of a case. */
static int drop_masks(const predict_job *j, volume_file *file, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (predict_task_of(j)->stem(j, file[i].stem) < strlen(file[i].stem))
            file[kept++] = file[i];
    return kept > 0 ? kept : count;
}

/*
 * Whether a folder is one of nnU-Net's for a network of one channel, so that the end '_0000' of
 * every file is no part of the case's name.
 */
static bool has_first_channels(const predict_job *j, const volume_file *file, int count)
{
    const predict_task *t = predict_task_of(j);
    bool all = t->stem == predict_channel_stem && !t->table && !t->maps;

    for (int i = 0; i < count; i++)
        all = all && text_ends_with(file[i].stem, "_0000");
    return all;
}

/*
 * Add all volumes of a folder. With 'channels', files that differ only in the end that tells the
 * channel, as '_0000', are one case.
 */
static pons_status add_folder(predict_job *j, const char *path, bool channels, pons_error *err)
{
    volume_file *file = NULL;
    int count = 0, next;

    if (volume_files_list_of(j->memory, path, file_use_of(j), &file, &count, err) != PONS_OK)
        return err->status;
    /* Rows of a table have the names of files; other results have that of the case. */
    if (!predict_task_of(j)->table && volume_files_refuse_equal(file, count, err) != PONS_OK)
        return err->status;
    if (channels && predict_task_of(j)->masks_beside)
        count = drop_masks(j, file, count);
    channels = channels || has_first_channels(j, file, count);
    for (int first = 0; first < count; first = next) {
        const char *stem = file[first].stem;
        size_t size = channels ? predict_task_of(j)->stem(j, stem) : strlen(stem);
        next = first + 1;
        while (next < count && size < strlen(stem)
               && predict_task_of(j)->stem(j, file[next].stem) == size
               && strncmp(stem, file[next].stem, size) == 0)
            next++;
        const char **member = new_case(j, arena_format(j->memory, "%.*s", (int)size, stem),
                                       next - first);
        for (int i = first; i < next; i++)
            *member++ = file[i].path;
    }
    return PONS_OK;
}

/* Add the cases of a dataset or of patterns. */
static pons_status add_dataset(predict_job *j, const char *argument, pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);
    slide_settings patches;
    const predict_dataset_needs needs = {
        .target = e->task.whole ? TARGET_OF_CASE : TARGET_OF_VOXELS,
        .split = (predict_split)j->flags->split,
        .channels_optional = predict_task_of(j)->channels_optional,
        .slides = predict_patches_known(e, &patches) ? &patches : NULL
    };
    dataset *d;

    if (predict_dataset_open(argument, &needs, &d, err) != PONS_OK)
        return err->status;
    j->datasets[j->dataset_count++] = d;
    log_line(j->call->log, "%.4000s, %d case%s", dataset_layout_text(d), d->case_count,
             text_plural(d->case_count));
    for (int i = 0; i < d->case_count; i++) {
        const data_case *c = &d->cases[i];
        const char **file = new_case(j, c->id, c->image_count);

        memcpy(file, c->image, (size_t)c->image_count * sizeof *file);
        j->cases[j->case_count - 1].stack = c->stack;
        j->cases[j->case_count - 1].slice = c->slice;
        j->cases[j->case_count - 1].patch = c->patch;
    }
    return PONS_OK;
}

pons_status predict_list_cases(predict_job *j, pons_error *err)
{
    const invocation *call = j->call;
    const predictor *first = j->member[0];
    bool maps = predict_task_of(j)->maps;
    bool by_channel = !maps && (predictor_experiment(first)->task.channels > 1
                                || predictor_is_nnunet(first));
    bool of_folder = false;

    j->datasets = arena_alloc(j->memory, (size_t)call->argument_count * sizeof *j->datasets);
    for (int i = 1; i < call->argument_count; i++) {
        bool folder = folder_is_there(call->argument[i]);
        bool listed = !(folder && maps)
                      && predict_dataset_is(call->argument[i], file_use_of(j));
        if (!listed && !folder) {
            if (!add_channel(j, call->argument[i]))
                add_list(j, call->argument[i]);
            continue;
        }
        of_folder = true;
        if (listed && add_dataset(j, call->argument[i], err) != PONS_OK)
            return err->status;
        if (!listed && add_folder(j, call->argument[i], by_channel, err) != PONS_OK)
            return err->status;
    }
    if (j->flags->split != PREDICT_SPLIT_AUTO && j->dataset_count == 0)
        return pons_fail(err, PONS_USAGE, "--split has no effect, found images and no dataset");
    for (int i = 0; i < j->case_count; i++)
        if (predict_task_of(j)->arrange(j, &j->cases[i], err) != PONS_OK)
            return err->status;
    return predict_task_of(j)->check_output(j, of_folder, err);
}

/* Compare files by the channels that their names tell. */
static int compare_channels(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(strrchr(*x, '_'), strrchr(*y, '_'));
}

/* Order the files "CASE_0001.nii.gz" of a case by their channels. */
static void sort_channels(predict_job *j, predict_input *c)
{
    const char **file = arena_alloc(j->memory, (size_t)c->file_count * sizeof *file);

    memcpy(file, c->file, (size_t)c->file_count * sizeof *file);
    qsort(file, (size_t)c->file_count, sizeof *file, compare_channels);
    c->file = file;
}

pons_status predict_arrange_channels(predict_job *j, predict_input *c, pons_error *err)
{
    int channels = predictor_image_channels(j->member[0]);
    bool named = predictor_is_nnunet(j->member[0]);

    for (int i = 0; named && i < c->file_count; i++)
        named = nnunet_case(j, c->file[i])[0] != '\0';
    if (named)
        sort_channels(j, c);
    if (!predictor_is_nnunet(j->member[0]) || nnunet_case(j, c->file[0])[0] == '\0')
        return PONS_OK;
    for (int i = 0; i < channels; i++) {
        const char *stem = i < c->file_count ? volume_file_stem(j->memory, c->file[i]) : "";
        const char *end = arena_format(j->memory, "_%04d", i);
        if (!text_ends_with(stem, end))
            return pons_fail(err, PONS_DATA, "case '%s' has no file of channel %d, expected "
                             "'%s%s'", c->name, i, c->name, end);
    }
    return PONS_OK;
}
