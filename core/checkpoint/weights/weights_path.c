/*
 * weights_path.c - the kinds of folders that hold weights, in a table.
 */
#include "checkpoint/weights/weights_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folds.h"

static const char *const fold_files[] = { "checkpoint_final.pth", "checkpoint_best.pth" };

const char *weights_of_fold(const char *folder)
{
    for (size_t i = 0; i < sizeof fold_files / sizeof fold_files[0]; i++)
        if (folder_holds(folder, fold_files[i]))
            return fold_files[i];
    return NULL;
}

static pons_status join(const char *folder, const char *name, char **out, pons_error *err)
{
    if (asprintf(out, "%s/%s", folder, name) >= 0)
        return PONS_OK;
    *out = NULL;
    return pons_fail(err, PONS_DEVICE, "out of memory");
}

/* FOLDER/NAME if it is there, else NULL. */
static pons_status find_in(const char *folder, const char *name, char **out, pons_error *err)
{
    if (join(folder, name, out, err) == PONS_OK && access(*out, F_OK) != 0) {
        free(*out);
        *out = NULL;
    }
    return err->status;
}

static pons_status find_in_checkpoint(const char *folder, char **out, pons_error *err)
{
    if (find_in(folder, "ema.safetensors", out, err) != PONS_OK || *out != NULL)
        return err->status;
    return join(folder, "model.safetensors", out, err);
}

/* In the best checkpoint among those of a run. */
static pons_status find_in_run(const char *run, const char *checkpoints, char **out,
                               pons_error *err)
{
    char *best = NULL;

    if (checkpoint_marked(checkpoints, "best", &best, err) == PONS_OK && best == NULL)
        pons_fail(err, PONS_CONFIG, "'%s' holds no checkpoint yet", run);
    if (err->status == PONS_OK)
        find_in_checkpoint(best, out, err);
    free(best);
    return err->status;
}

/* Find the file of a run, checkpoint, bundle or fold of nnU-Net; *out stays NULL elsewhere. */
static pons_status find_in_folder(const char *folder, char **out, pons_error *err)
{
    const char *name = folder_holds(folder, WEIGHTS_OF_BUNDLE) ? WEIGHTS_OF_BUNDLE
                                                               : weights_of_fold(folder);
    char *own = NULL;

    if (find_in(folder, "checkpoints", &own, err) == PONS_OK && own != NULL)
        find_in_run(folder, own, out, err);
    else if (err->status == PONS_OK && find_in(folder, "manifest.json", &own, err) == PONS_OK
             && own != NULL && checkpoint_verify(folder, err) == PONS_OK)
        find_in_checkpoint(folder, out, err);
    free(own);
    if (err->status != PONS_OK || *out != NULL)
        return err->status;
    return name != NULL ? join(folder, name, out, err) : PONS_OK;
}

/* FOLDER/fold_K, or FOLDER/fold_all behind the last number. */
static pons_status fold_path(const char *folder, int number, char **out, pons_error *err)
{
    if (number == RUN_FOLDS_MAX)
        return join(folder, "fold_all", out, err);
    *out = run_folds_path(folder, number);
    return *out != NULL ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory");
}

/*
 * The folds of a cross-validation, or of a model folder of nnU-Net, are networks of their own: one
 * that is alone is taken, and fold_all only without numbered ones.
 */
static pons_status find_in_folds(const char *folder, char **out, pons_error *err)
{
    char *first = NULL, *fold = NULL;
    int count = 0;

    for (int i = 0; i < RUN_FOLDS_MAX + (count == 0) && err->status == PONS_OK; i++) {
        if (fold_path(folder, i, &fold, err) == PONS_OK && folder_is_there(fold) && count++ == 0) {
            first = fold;
            fold = NULL;
        }
        free(fold);
    }
    if (err->status == PONS_OK && count > 1)
        pons_fail(err, PONS_CONFIG, "'%s' holds folds, expected one of them, as '%s'", folder,
                  first);
    else if (err->status == PONS_OK && count == 1)
        find_in_folder(first, out, err);
    free(first);
    return err->status;
}

static pons_status refuse_folder(const char *folder, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "'%s' holds no weights: it is no run (with checkpoints), no "
                     "checkpoint (with manifest.json), no bundle (with " WEIGHTS_OF_BUNDLE ") and "
                     "no fold of nnU-Net (with checkpoint_final.pth)", folder);
}

pons_status weights_path_find(const char *path, char **out, pons_error *err)
{
    *out = NULL;
    if (folder_is_there(path)) {
        if (find_in_folder(path, out, err) == PONS_OK && *out == NULL)
            find_in_folds(path, out, err);
        return err->status != PONS_OK || *out != NULL ? err->status : refuse_folder(path, err);
    }
    if (asprintf(out, "%s", path) >= 0)
        return PONS_OK;
    *out = NULL;
    return pons_fail(err, PONS_DEVICE, "out of memory");
}
