/*
 * predict_modalities.c - modalities found in the names of files, as in 'case-t1c.nii.gz'.
 */
#include "cli/predict/predict_modalities.h"

#include <ctype.h>
#include <string.h>

#include "base/text/text.h"
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
    if (c->file_count == 1 && modality_of(e, volume_file_stem(memory, c->file[0])) < 0)
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

/* The number of modalities without a file; *first is the first of them. */
static int count_missing(const predict_input *c, int *first)
{
    int missing = 0;

    for (int m = c->file_count - 1; m >= 0; m--)
        if (c->file[m] == NULL) {
            missing++;
            *first = m;
        }
    return missing;
}

static pons_status choose_target(const experiment *e, arena *memory, const char *target,
                                 predict_input *c, pons_error *err)
{
    int absent = -1, missing = count_missing(c, &absent);

    c->target = target != NULL ? class_index_of_name(e->classes, e->class_count, target) : absent;
    if (c->target < 0 && target != NULL)
        return pons_fail(err, PONS_USAGE, "--target '%s': the network has no such modality, "
                         "expected one of %s", target, names_of(e, memory));
    if (c->target < 0)
        return pons_fail(err, PONS_USAGE, "case '%s' lacks no modality\nhint: --target NAME makes "
                         "one of %s from the others", c->name, names_of(e, memory));
    if (missing > 1 || (missing == 1 && c->target != absent))
        return pons_fail(err, PONS_DATA, "case '%s' has no file of '%s'%s, expected all modalities "
                         "but '%s'", c->name, e->classes[absent].name,
                         missing > 1 ? " and of others" : "", e->classes[c->target].name);
    return PONS_OK;
}

pons_status predict_modalities_arrange(const experiment *e, arena *memory, const char *target,
                                       predict_input *c, pons_error *err)
{
    if (place_files(e, memory, c, err) != PONS_OK)
        return err->status;
    return choose_target(e, memory, target, c, err);
}
