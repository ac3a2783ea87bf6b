/*
 * predict_modalities.c - modalities found in the names of files, as in 'case-t1c.nii.gz'.
 */
#include "cli/predict/predict_modalities.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "config/list.h"
#include "data/dataset/class_list.h"
#include "data/volume/volume_files.h"

/* The modality that a stem ends with, after a character that is no letter or digit; -1: none. */
static int modality_of(const experiment *e, const char *stem)
{
    size_t size = strlen(stem);

    for (int m = 0; m < e->class_count; m++) {
        size_t end = strlen(e->classes[m].name);

        if (size > end + 1 && strcmp(stem + size - end, e->classes[m].name) == 0
            && !isalnum((unsigned char)stem[size - end - 1]))
            return m;
    }
    return -1;
}

size_t predict_modalities_stem(const experiment *e, const char *stem)
{
    int m = modality_of(e, stem);

    return m < 0 ? strlen(stem) : strlen(stem) - strlen(e->classes[m].name) - 1;
}

static const char *names_of(const experiment *e, arena *memory)
{
    return list_join(memory, e->task.channels, e->task.channel_names);
}

/* Put each file at its modality. False: a name tells none, or two tell the same. */
static bool place_by_name(const experiment *e, arena *memory, const predict_input *c,
                          const char **file)
{
    for (int i = 0; i < c->file_count; i++) {
        if (c->file[i] == NULL)
            continue;
        int m = modality_of(e, volume_file_stem(memory, c->file[i]));

        if (m < 0 || file[m] != NULL)
            return false;
        file[m] = c->file[i];
    }
    return true;
}

static pons_status place_files(const experiment *e, arena *memory, predict_input *c,
                               pons_error *err)
{
    size_t size = (size_t)e->class_count * sizeof *c->file;
    const char **file = arena_alloc(memory, size);

    memset(file, 0, size);
    if (c->file_count == 1 && c->file[0] != NULL
        && modality_of(e, volume_file_stem(memory, c->file[0])) < 0)
        return PONS_OK;
    if (!place_by_name(e, memory, c, file)) {
        if (c->file_count != e->class_count)
            return pons_fail(err, PONS_DATA, "case '%s' has %d files whose names do not end with "
                             "the modalities, expected %d files, or ends such as -%s of %s",
                             c->name, c->file_count, e->class_count, e->classes[0].name,
                             names_of(e, memory));
        return PONS_OK;
    }
    c->name = arena_format(memory, "%.*s", (int)predict_modalities_stem(e, c->name), c->name);
    c->file = file;
    c->file_count = e->class_count;
    return PONS_OK;
}

/* The names of the modalities that the network makes. */
static const char *targets_of(const experiment *e, arena *memory)
{
    const char **name = arena_alloc(memory, (size_t)e->target_count * sizeof *name);

    for (int i = 0; i < e->target_count; i++)
        name[i] = e->classes[e->targets[i]].name;
    return list_join(memory, e->target_count, name);
}

/* The modalities without a file, in order; the number of them. 'missing' [class_count]. */
static int find_missing(const predict_input *c, int *missing)
{
    int count = 0;

    for (int m = 0; m < c->file_count; m++)
        if (c->file[m] == NULL)
            missing[count++] = m;
    return count;
}

static pons_status check_readable(const predict_input *c, pons_error *err)
{
    for (int i = 0; i < c->file_count && c->stack == NULL; i++)
        if (c->file[i] != NULL && access(c->file[i], R_OK) != 0)
            return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read '%s': %s",
                             c->file[i], strerror(errno));
    return PONS_OK;
}

static pons_status choose_target(const experiment *e, arena *memory, const char *target,
                                 int absent, predict_input *c, pons_error *err)
{
    if (target != NULL)
        c->target = class_index_of_name(e->classes, e->class_count, target);
    else
        c->target = e->target_count == 1 ? e->targets[0] : absent;
    if (target != NULL && (c->target < 0 || !experiment_is_target(e, c->target)))
        return pons_fail(err, PONS_USAGE, "--target '%s': the network makes no such modality, "
                         "expected one of %s", target, targets_of(e, memory));
    if (c->target < 0 && check_readable(c, err) == PONS_OK)
        pons_fail(err, PONS_USAGE, "case '%s' lacks no modality\nhint: --target NAME makes "
                  "one of %s from the others", c->name, targets_of(e, memory));
    return err->status;
}

/* Refuse a case that lacks another modality than its target. */
static pons_status check_files(const experiment *e, arena *memory, const predict_input *c,
                               int count, const int *missing, pons_error *err)
{
    const char **other = arena_alloc(memory, (size_t)count * sizeof *other + 1);
    int others = 0;

    for (int i = 0; i < count; i++)
        if (missing[i] != c->target)
            other[others++] = e->classes[missing[i]].name;
    if (others > 0)
        return pons_fail(err, PONS_DATA, "case '%s' has no file of %s, expected all modalities but "
                         "'%s'", c->name, list_join(memory, others, other),
                         e->classes[c->target].name);
    if (experiment_is_target(e, c->target))
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "case '%s' has no file of %s, expected all modalities but one "
                     "of %s", c->name, e->classes[c->target].name, targets_of(e, memory));
}

pons_status predict_modalities_arrange(const experiment *e, arena *memory, const char *target,
                                       predict_input *c, pons_error *err)
{
    if (place_files(e, memory, c, err) != PONS_OK)
        return err->status;
    int *missing = arena_alloc(memory, (size_t)e->class_count * sizeof *missing);
    int count = find_missing(c, missing);

    if (choose_target(e, memory, target, count > 0 ? missing[0] : -1, c, err) != PONS_OK)
        return err->status;
    return check_files(e, memory, c, count, missing, err);
}
