/*
 * train_checkpoint.c - the checkpoint that a run goes on from: found, locked, compared with the
 * run, and left.
 */
#include "cli/train/train_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/text/shell_word.h"
#include "checkpoint/run_folds.h"
#include "config/list.h"
#include "experiment/provenance.h"
#include "experiment/resolved.h"
#include "experiment/resume.h"
#include "experiment/run_identity.h"
#include "experiment/tuning.h"

/* ---- find ------------------------------------------------------------------------------------ */

/* Take a checkpoint NAME/checkpoints/STEP, with a shared lock of its run. */
static pons_status take_checkpoint(train_job *s, const char *path, pons_error *err)
{
    char *run = NULL;

    if (asprintf(&run, "%s/../..", path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (run_folder_lock_shared(&s->folder, run, &s->other, err) == PONS_OK
        && checkpoint_verify(path, err) == PONS_OK)
        s->checkpoint = strdup(path);
    free(run);
    return err->status;
}

static pons_status take_newest(train_job *s, const char *path, pons_error *err)
{
    char *folder = NULL;

    if (asprintf(&folder, "%s/checkpoints", path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (run_folder_lock_shared(&s->folder, path, &s->other, err) == PONS_OK)
        checkpoint_newest(folder, s->call->log, &s->checkpoint, err);
    free(folder);
    return err->status;
}

static pons_status find_other(train_job *s, pons_error *err)
{
    const char *path = s->flags->resume;

    if ((folder_holds(path, "manifest.json") ? take_checkpoint(s, path, err)
                                             : take_newest(s, path, err)) != PONS_OK)
        return err->status;
    if (s->checkpoint == NULL)
        return pons_fail(err, PONS_CONFIG, "--resume: '%s' is neither a run with checkpoints nor a "
                         "checkpoint", path);
    return PONS_OK;
}

void train_leave_other(train_job *s)
{
    if (s->other >= 0)
        close(s->other);
    s->other = -1;
}

pons_status train_find_checkpoint(train_job *s, pons_error *err)
{
    bool other = s->flags->resume != NULL && s->flags->resume[0] != '\0';

    if (s->flags->fresh && other)
        return pons_fail(err, PONS_USAGE, "--fresh and --resume exclude each other");
    if (run_folds_are_there(s->folder.path))
        return pons_fail(err, PONS_CONFIG, "'%s' holds the folds of a cross-validation, expected a "
                         "folder of its own\nhint: --folds N goes on with them; --set "
                         "experiment.name=NAME is another run", s->folder.path);
    /* The lock comes first, because another process may still write the folder. */
    if (run_folder_lock(&s->folder, err) != PONS_OK || s->flags->fresh
        || checkpoint_check_marks(s->folder.checkpoints, err) != PONS_OK)
        return err->status;
    if (checkpoint_newest(s->folder.checkpoints, s->call->log, &s->checkpoint, err) != PONS_OK)
        return err->status;
    s->own = s->checkpoint != NULL;
    if (!s->own && !other && folder_holds(s->folder.path, "resolved.ini"))
        log_line(s->call->log, "'%s' has no checkpoint to go on from; the training begins anew",
                 s->folder.path);
    if (!other)
        return PONS_OK;
    if (s->own)
        return pons_fail(err, PONS_CONFIG, "--resume: '%s' holds checkpoints of its own\nhint: "
                         "without --resume it goes on; --set experiment.name=NAME is a new run",
                         s->folder.path);
    return find_other(s, err);
}

/* ---- an edited resolved.ini ------------------------------------------------------------------ */

/* The path of the checkpoint's resolved.ini, malloc'ed; NULL if another run has none. */
static char *find_resolved(const train_job *s)
{
    char *above = NULL, *path;

    if (s->own)
        return run_folder_file(&s->folder, "resolved.ini");
    if (asprintf(&above, "%s/../../resolved.ini", s->checkpoint) < 0)
        return NULL;
    path = realpath(above, NULL);
    free(above);
    return path;
}

void train_compare_resolved(const train_job *s, const char *outcome)
{
    char *path = s->checkpoint != NULL ? find_resolved(s) : NULL;
    pons_error problem = PONS_ERROR_INIT;
    bool same;

    if (path != NULL
        && (resolved_check(s->checkpoint, path, &same, &problem) != PONS_OK
            || (!same && run_identity_check(s->checkpoint, path, &problem) != PONS_OK)))
        log_warning(s->call->log, "%s; %s", problem.text, outcome);
    free(path);
}

void train_hint_plugins(const train_job *s, pons_error *err)
{
    char *path = err->status != PONS_OK && s->checkpoint != NULL ? find_resolved(s) : NULL;

    resolved_hint_plugins(path, err);
    free(path);
}

/* ---- a run that goes on ---------------------------------------------------------------------- */

/* The value of --set that takes the checkpoint's weights; "" if its path is unknown. */
static const char *set_pretrained(const train_job *s, char *word, size_t size)
{
    char *path = realpath(s->checkpoint, NULL);
    arena *memory = path != NULL ? arena_new() : NULL;

    word[0] = '\0';
    if (memory != NULL)
        shell_word(word, size, arena_format(memory, "train.pretrained=%s", list_single(
                   memory, arena_format(memory, "%s/model.safetensors", path))));
    arena_free(memory);
    free(path);
    return word;
}

pons_status train_add_way_out(const train_job *s, pons_error *err)
{
    size_t used = strlen(err->text), room = sizeof err->text - used;
    pons_error hint = PONS_ERROR_INIT;
    char word[sizeof err->text];

    if (err->status != PONS_CONFIG || strstr(err->text, "\nhint: ") != NULL)
        return err->status;
    if (s->own)
        pons_fail(&hint, PONS_CONFIG, "hint: --fresh starts anew, another [experiment] name keeps "
                  "both; with --resume %s that run goes on from here, and may change [loss], "
                  "[schedule], [augment] and [optimizer] lr",
                  shell_word(word, sizeof word, s->folder.path));
    else if (set_pretrained(s, word, sizeof word)[0] != '\0')
        pons_fail(&hint, PONS_CONFIG, "hint: --resume may change [loss], [schedule], [augment] and "
                  "[optimizer] lr; in its place --set %s begins anew with the weights of the same "
                  "network", word);
    if (hint.status != PONS_OK)
        snprintf(err->text + used, room, "\n%s", hint.text);
    return err->status;
}

pons_status train_leave_checkpoint(train_job *s, pons_error *err)
{
    if (s->checkpoint != NULL) {
        resume_restore(&s->saved, s->experiment);
        provenance_compare(s->checkpoint, s->experiment, s->call->log, err);
        if (train_add_way_out(s, err) == PONS_OK)
            train_compare_resolved(s, s->own ? "it is written anew"
                                             : "this run's values come from its own INI file");
    }
    train_leave_other(s);
    return err->status;
}

pons_status train_read_choices(train_job *s, pons_error *err)
{
    char *other = NULL;

    if (s->checkpoint == NULL)
        return PONS_OK;
    if (s->own)
        return tuning_read(s->experiment->tuning, s->folder.path, err);
    if (asprintf(&other, "%s/../..", s->checkpoint) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    tuning_read(s->experiment->tuning, other, err);
    free(other);
    return err->status;
}
