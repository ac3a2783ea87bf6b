/*
 * predict_paths.c - the paths of results, which replace no image and no other result.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/text/shell_word.h"
#include "base/text/text.h"
#include "cli/predict/predict_bids.h"
#include "cli/predict/predict_internal.h"
#include "report/picture/png_write.h"

const char *predict_path_of_more(const predict_job *j, const char *path, const char *what)
{
    int size = (int)strlen(path);

    size -= text_ends_with(path, ".nii.gz") ? 7 : text_ends_with(path, ".nii") ? 4 : 0;
    return arena_format(j->memory, "%.*s_%s.nii.gz", size, path, what);
}

/* Endings of labels and of probabilities in a derivative of BIDS. */
#define LABELS_END "_dseg.nii.gz"
#define PROBABILITIES_END "_probseg.nii.gz"

const char *predict_path_beside(const predict_job *j, const char *labels, const char *ending)
{
    return arena_format(j->memory, "%.*s%s", (int)(strlen(labels) - strlen(LABELS_END)), labels,
                        ending);
}

const char *predict_path_of_probabilities(const predict_job *j, const char *path)
{
    return j->bids != NULL ? predict_path_beside(j, path, PROBABILITIES_END)
                           : predict_path_of_more(j, path, "probabilities");
}

const char *predict_path_of_overlay(const predict_job *j, const char *map)
{
    return arena_format(j->memory, "%.*s_overlay.png", (int)(strrchr(map, '.') - map), map);
}

/* The file of labels in a derivative of BIDS; an entity tells a cascade's first stage. */
static const char *path_in_bids(const predict_job *j, int number)
{
    char *stage = arena_string(j->memory, j->stage != NULL ? j->stage : ""), *to = stage;

    for (const char *from = stage; *from != '\0'; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
    return arena_format(j->memory, "%s/%s%s%s" LABELS_END, j->flags->output, j->bids[number],
                        stage[0] != '\0' ? "_seg-" : "", stage);
}

const char *predict_path_of(const predict_job *j, int number)
{
    const char *path = j->flags->output;

    if (j->bids != NULL)
        return path_in_bids(j, number);
    if (j->folder && !predict_task_of(j)->table)
        path = arena_format(j->memory, "%s%s%s%s", path, text_ends_with(path, "/") ? "" : "/",
                            j->cases[number].name, predict_task_of(j)->ending);
    return j->stage != NULL ? predict_path_of_more(j, path, j->stage) : path;
}

/*
 * Files of a case: classes, logits, probabilities, entropy, variance and the labels of a cascade's
 * first stage; or a map and its picture.
 */
enum { RESULTS_MAX = 6 };

static int results_of(const predict_job *j, int number, const char *path[RESULTS_MAX])
{
    int count = 0;

    path[count++] = predict_path_of(j, number);
    if (predict_task_of(j)->maps && png_available())
        path[count++] = predict_path_of_overlay(j, path[0]);
    if (j->flags->logits)
        path[count++] = predict_path_of_more(j, path[0], "logits");
    if (j->flags->probabilities)
        path[count++] = predict_path_of_probabilities(j, path[0]);
    if (j->flags->uncertainty) {
        path[count++] = predict_path_of_more(j, path[0], "entropy");
        path[count++] = predict_path_of_more(j, path[0], "variance");
    }
    if (j->first != NULL)
        path[count++] = predict_path_of(j->first, number);
    return count;
}

void predict_sweep_results(const predict_job *j)
{
    const char *path[RESULTS_MAX];
    int cases = j->folder && j->bids == NULL ? 0 : j->case_count;

    if (j->folder)
        safe_file_sweep(j->flags->output);
    for (int n = 0; n < cases; n++)
        for (int i = 0, count = results_of(j, n, path); i < count; i++)
            safe_file_sweep_path(path[i]);
}

/* ---- -o of volumes --------------------------------------------------------------------------- */

/* Name the cases of a derivative of BIDS. */
static pons_status name_by_bids(predict_job *j, pons_error *err)
{
    if (predict_bids_check(j->memory, j->flags->output, err) != PONS_OK)
        return err->status;
    j->bids = arena_alloc(j->memory, (size_t)j->case_count * sizeof *j->bids + 1);
    for (int i = 0; i < j->case_count; i++)
        if (predict_bids_stem(j->memory, j->cases[i].file[0], &j->bids[i], err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* Whether a path ends as a file's name does: with a dot and at most 4 letters and digits. */
static bool has_ending(const char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *dot = strrchr(path, '.');
    size_t size = dot != NULL ? strlen(dot + 1) : 0;

    return size > 0 && size <= 4 && strspn(dot + 1, letters) == size
        && strspn(dot + 1, "0123456789") < size;
}

pons_status predict_check_volumes(predict_job *j, bool of_folder, pons_error *err)
{
    const char *output = j->flags->output;

    j->folder = j->flags->bids || j->case_count > 1 || folder_is_there(output)
                || text_ends_with(output, "/")
                || (of_folder && file_kind_ending(output, FILE_VOLUME) == 0);
    if (!j->folder && file_kind_ending(output, FILE_VOLUME) == 0)
        return pons_fail(err, PONS_USAGE, "-o '%s': expected a file .nii or .nii.gz for one image",
                         output);
    if (j->folder && has_ending(output) && !folder_is_there(output))
        return pons_fail(err, PONS_USAGE, "-o '%s': expected a folder for %d image%s\n"
                         "hint: with '/' at its end the name is that of a folder", output,
                         j->case_count, text_plural(j->case_count));
    return j->flags->bids ? name_by_bids(j, err) : PONS_OK;
}

/* ---- files that would be replaced ------------------------------------------------------------ */

/* The identities of files, sorted for a binary search. */
typedef struct identities {
    size_t count;
    file_identity *item;
} identities;

static int compare_identities(const void *a, const void *b)
{
    const file_identity *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static void add_identity(identities *all, const char *path)
{
    all->count += path != NULL && file_identify(path, &all->item[all->count]);
}

/* The files that are read: images, and labels of a cascade's first stage. */
static identities identify_inputs(const predict_job *j)
{
    identities all = { 0, NULL };

    for (int i = 0; i < j->case_count; i++)
        all.count += (size_t)j->cases[i].file_count + 1;
    all.item = arena_alloc(j->memory, all.count * sizeof *all.item + 1);
    all.count = 0;
    for (int i = 0; i < j->case_count; i++) {
        for (int k = 0; k < j->cases[i].file_count; k++)
            add_identity(&all, j->cases[i].file[k]);
        add_identity(&all, j->cases[i].previous);
    }
    qsort(all.item, all.count, sizeof *all.item, compare_identities);
    return all;
}

static pons_status check_path(const predict_job *j, const identities *inputs, const char *path,
                              pons_error *err)
{
    file_identity there;

    if (file_identify(path, &there)
        && bsearch(&there, inputs->item, inputs->count, sizeof there, compare_identities) != NULL)
        return pons_fail(err, PONS_USAGE, "-o '%s': '%s' would replace an image that is read, "
                         "expected another file or folder", j->flags->output, path);
    return PONS_OK;
}

/* The start of "A/B/FILE" up to the folder that has FILE: "A/"; its size, -1 without folders. */
static int size_above(const char *path)
{
    const char *name = strrchr(path, '/');

    while (name != NULL && name > path && name[-1] != '/')
        name--;
    return name != NULL ? (int)(name - path) : -1;
}

/* A hint for files of one name in sibling folders, as a shell expands a pattern of folders. */
static const char *pattern_hint(const predict_job *j)
{
    const char **path = j->call->argument + 1;
    char word[4096];
    int count = j->call->argument_count - 1, size = size_above(path[0]);
    const char *name = strrchr(path[0], '/');

    for (int i = 1; size >= 0 && i < count; i++)
        if (size_above(path[i]) != size || strncmp(path[i], path[0], (size_t)size) != 0
            || strcmp(strrchr(path[i], '/'), name) != 0)
            size = -1;
    if (size < 0 || count < 2 || folder_is_there(path[0]))
        return "";
    shell_word(word, sizeof word, arena_format(j->memory, "%.*s*%s", size, path[0], name));
    return arena_format(j->memory, "\nhint: the quoted pattern %s names results by folder", word);
}

/* A table has a row for each image, also for one that a folder holds as well. */
static void warn_of_repeats(const predict_job *j, const identities *inputs)
{
    int repeats = 0;

    for (int i = 0; i < j->case_count; i++)
        if (j->cases[i].patch != NULL || j->cases[i].file_count > 1)
            return; /* several cases, or channels, of one file */
    for (size_t i = 1; i < inputs->count; i++)
        repeats += compare_identities(&inputs->item[i - 1], &inputs->item[i]) == 0;
    if (repeats > 0)
        log_warning(j->call->log, "%d image%s given twice, and %s a row for each", repeats,
                    repeats == 1 ? " is" : "s are", repeats == 1 ? "has" : "have");
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

pons_status predict_check_paths(const predict_job *j, pons_error *err)
{
    const char **path = arena_alloc(j->memory,
                                    (size_t)j->case_count * RESULTS_MAX * sizeof *path + 1);
    const identities inputs = identify_inputs(j);
    int count = 0;

    if (predict_task_of(j)->table)
        warn_of_repeats(j, &inputs);
    for (int i = 0; i < (predict_task_of(j)->table ? 1 : j->case_count); i++)
        count += results_of(j, i, path + count);
    for (int i = 0; i < count; i++)
        if (check_path(j, &inputs, path[i], err) != PONS_OK)
            return err->status;
    qsort(path, (size_t)count, sizeof *path, compare_paths);
    for (int i = 1; i < count; i++)
        if (strcmp(path[i - 1], path[i]) == 0)
            return pons_fail(err, PONS_USAGE, "-o '%s': the results of two images would overwrite "
                             "each other, both are '%s'%s", j->flags->output, path[i],
                             pattern_hint(j));
    return PONS_OK;
}
