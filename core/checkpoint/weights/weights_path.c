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

/* The folds of a cross-validation, or of a model folder of nnU-Net, are networks of their own. */
static pons_status refuse_folds(const char *folder, pons_error *err)
{
    for (int i = 0; i < RUN_FOLDS_MAX && err->status == PONS_OK; i++) {
        char *fold = run_folds_path(folder, i);
        if (fold == NULL)
            pons_fail(err, PONS_DEVICE, "out of memory");
        else if (folder_is_there(fold))
            pons_fail(err, PONS_CONFIG, "'%s' holds folds, expected one of them, as '%s'", folder,
                      fold);
        free(fold);
    }
    return err->status;
}

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
    if (name == NULL && refuse_folds(folder, err) != PONS_OK)
        return err->status;
    if (name == NULL)
        return pons_fail(err, PONS_CONFIG, "'%s' holds no weights: it is no run (with "
                         "checkpoints), no checkpoint (with manifest.json), no bundle (with "
                         WEIGHTS_OF_BUNDLE ") and no fold of nnU-Net (with checkpoint_final.pth)",
                         folder);
    return join(folder, name, out, err);
}

pons_status weights_path_find(const char *path, char **out, pons_error *err)
{
    *out = NULL;
    if (folder_is_there(path))
        return find_in_folder(path, out, err);
    if (asprintf(out, "%s", path) >= 0)
        return PONS_OK;
    *out = NULL;
    return pons_fail(err, PONS_DEVICE, "out of memory");
}
