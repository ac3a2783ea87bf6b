/*
 * run_folds.c - find the folds of a cross-validation, and how far each has come.
 */
#include "checkpoint/run_folds.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/saved_state.h"
#include "data/dataset/split.h"

char *run_folds_path(const char *path, int fold)
{
    char *out = NULL;

    return asprintf(&out, "%s/fold_%d", path, fold) < 0 ? NULL : out;
}

/* K of "fold_K"; -1: another name. */
static int fold_of_name(const char *name)
{
    int fold = -1;
    char again[32];

    if (sscanf(name, "fold_%9d", &fold) != 1 || fold < 0 || fold >= RUN_FOLDS_MAX)
        return -1;
    snprintf(again, sizeof again, "fold_%d", fold);
    return strcmp(again, name) == 0 ? fold : -1;
}

/* Mark the folders of folds. An unreadable folder has none. */
static bool find_folders(const char *path, bool found[RUN_FOLDS_MAX])
{
    DIR *folder = opendir(path);
    bool any = false;

    memset(found, 0, RUN_FOLDS_MAX * sizeof *found);
    if (folder == NULL)
        return false;
    for (const struct dirent *e; (e = readdir(folder)) != NULL; ) {
        int fold = fold_of_name(e->d_name);

        if (fold >= 0)
            any = found[fold] = true;
    }
    closedir(folder);
    return any;
}

static bool holds_folder(const char *path, const char *name)
{
    char *inner = NULL;
    bool there = asprintf(&inner, "%s/%s", path, name) >= 0 && folder_is_there(inner);

    free(inner);
    return there;
}

bool run_folds_are_there(const char *path)
{
    bool found[RUN_FOLDS_MAX];

    return !holds_folder(path, "checkpoints") && find_folders(path, found);
}

bool run_folds_read_rule(const char *rule, const char *chosen, int *fold, int *count)
{
    if (rule != NULL && strcmp(rule, "nnunet") == 0) {
        *count = NNUNET_FOLDS;
        return chosen != NULL && sscanf(chosen, "%9d", fold) == 1;
    }
    return rule != NULL && sscanf(rule, "fold:%9d/%9d", fold, count) == 2;
}

/* Compare the fold's rule of validation with its folder and with the other folds. */
static pons_status check_rule(const char *path, int fold, const char *rule, const char *chosen,
                              run_folds *out, pons_error *err)
{
    int k = -1, count = 0;

    if (!run_folds_read_rule(rule, chosen, &k, &count) || k != fold || count > RUN_FOLDS_MAX
        || fold >= count)
        return pons_fail(err, PONS_CONFIG, "'%s/fold_%d' was trained with [data] validation = %s, "
                         "fold = %s, expected fold:%d/N, or nnunet and fold %d", path, fold,
                         rule != NULL ? rule : "0.2", chosen != NULL ? chosen : "first", fold,
                         fold);
    if (out->count != 0 && out->count != count)
        return pons_fail(err, PONS_CONFIG, "'%s/fold_%d' is of %d folds, the folds before it are "
                         "of %d", path, fold, count, out->count);
    out->count = count;
    return PONS_OK;
}

static pons_status read_state(const char *path, int fold, const char *checkpoint, run_folds *out,
                              pons_error *err)
{
    saved_state saved;

    if (saved_state_read(checkpoint, &saved, err) != PONS_OK)
        return err->status;
    check_rule(path, fold, safetensors_metadata(saved.file, "[data] validation"),
               safetensors_metadata(saved.file, "[data] fold"), out, err);
    out->state[fold] = saved.state.finished != 0 || saved.state.step >= saved.state.total
                       ? RUN_FOLD_FINISHED : RUN_FOLD_STARTED;
    saved_state_clear(&saved);
    return err->status;
}

static pons_status read_fold(const char *path, int fold, bool any, logger *l, run_folds *out,
                             pons_error *err)
{
    char *folder = NULL, *checkpoint = NULL;

    if (asprintf(&folder, "%s/fold_%d/checkpoints", path, fold) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
    if (folder_is_there(folder)
        && (any ? checkpoint_any(folder, "last", l, &checkpoint, err)
                : checkpoint_marked(folder, "last", &checkpoint, err)) == PONS_OK
        && checkpoint != NULL)
        read_state(path, fold, checkpoint, out, err);
    free(checkpoint);
    free(folder);
    return err->status;
}

static pons_status read_folds(const char *path, bool any, logger *l, run_folds *out,
                              pons_error *err)
{
    bool found[RUN_FOLDS_MAX];

    memset(out, 0, sizeof *out);
    find_folders(path, found);
    for (int fold = 0; fold < RUN_FOLDS_MAX && err->status == PONS_OK; fold++)
        if (found[fold])
            read_fold(path, fold, any, l, out, err);
    return err->status;
}

/* Append "fold 1 (not finished), fold 3 (not there)". */
static int list_others(const run_folds *f, char *text, size_t size)
{
    size_t used = 0;
    int finished = 0;

    text[0] = '\0';
    for (int fold = 0; fold < f->count; fold++) {
        if (f->state[fold] == RUN_FOLD_FINISHED)
            finished++;
        else if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%sfold %d (%s)",
                                     used > 0 ? ", " : "", fold,
                                     f->state[fold] == RUN_FOLD_STARTED ? "not finished"
                                     : "not there");
    }
    return finished;
}

pons_status run_folds_finished(const char *path, bool any, logger *l, run_folds *out,
                               pons_error *err)
{
    char others[1024];
    int finished;

    if (read_folds(path, any, l, out, err) != PONS_OK)
        return err->status;
    finished = list_others(out, others, sizeof others);
    if (finished == 0)
        return pons_fail(err, PONS_CONFIG, "'%s' holds no finished fold%s%s\nhint: pons train goes "
                         "on with them; --fold K or '%s/fold_K' takes one as it is", path,
                         others[0] != '\0' ? ": " : "", others, path);
    if (finished < out->count)
        log_warning(l, "'%s' lacks %s: %d of %d folds are used", path, others, finished,
                    out->count);
    return PONS_OK;
}
