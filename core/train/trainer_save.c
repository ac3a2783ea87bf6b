/*
 * trainer_save.c - a trainer's storage and state to a checkpoint and back.
 *
 * A step waits for the copy alone: a thread of its own writes it, one at a time, and what went
 * wrong is told to the next step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/whole.h"
#include "cluster/group/group.h"
#include "train/trainer_internal.h"

/* ---- save ------------------------------------------------------------------------------------ */

/* All of a state but how far the run is to go, which may change before its next step. */
static bool is_kept(const trainer *t)
{
    trainer_state kept = t->kept;

    kept.total = t->state.total;
    kept.applied = t->state.applied; /* functions of the step; read from the storage to be saved */
    kept.scale = t->state.scale;
    kept.sound = t->state.sound;
    return memcmp(&kept, &t->state, sizeof kept) == 0;
}

/* Somebody has removed or renamed the checkpoint before this one. */
static bool is_lost(const save_order *o)
{
    return o->before >= 0 && !checkpoint_is_there(o->settings->checkpoints, o->before);
}

/* The records of the steps, then the checkpoint, then what names it. */
static pons_status write_all(const save_order *o, pons_error *err)
{
    const trainer_settings *to = o->settings;

    if (to->observer.sync(to->observer.context, err) != PONS_OK
        || (o->whole && snapshot_write(&o->snapshot, to->checkpoints, err) != PONS_OK)
        || checkpoint_mark(to->checkpoints, "last", o->step, err) != PONS_OK)
        return err->status;
    return o->best ? checkpoint_mark(to->checkpoints, "best", o->step, err) : PONS_OK;
}

/* A checkpoint whose folder is removed while it is written is written once more. */
static pons_status write_twice(const save_order *o, pons_error *err)
{
    if (write_all(o, err) != PONS_OK && o->whole && is_lost(o)) {
        *err = (pons_error)PONS_ERROR_INIT;
        write_all(o, err);
    }
    return err->status;
}

/*
 * A run ends where its folder lacks a file that it needs. The checkpoint is written before, for
 * nothing else has the steps since the last one. Where the last one is gone as well, somebody
 * removes the whole folder, and nothing is written.
 */
static pons_status write_in_whole(const save_order *o, pons_error *err)
{
    const trainer_observer *observer = &o->settings->observer;
    pons_error gone = PONS_ERROR_INIT;

    if (observer->check(observer->context, &gone) == PONS_OK)
        return write_twice(o, err);
    if (!is_lost(o))
        write_twice(o, err);
    *err = gone; /* also why a write fails */
    return err->status;
}

/* On the writer's thread. Old checkpoints that stay are no failure. */
static pons_status write_order(void *context, pons_error *err)
{
    save_order *o = context;

    if (write_in_whole(o, err) != PONS_OK)
        return err->status;
    o->lost = o->lost || is_lost(o);
    o->kept = (pons_error)PONS_ERROR_INIT;
    checkpoint_prune(o->settings->checkpoints, o->keep, &o->kept);
    return PONS_OK;
}

/* A run whose whole folder is gone ends with an error in the place of this warning. */
static void tell_lost(trainer *t)
{
    if (t->order.lost)
        log_warning(t->experiment->log, "earlier checkpoints in '%s' are gone: somebody has "
                    "removed or renamed them; the run goes on, and step %lld is saved there",
                    t->settings->checkpoints, (long long)t->order.step);
    t->order.lost = false;
}

/* Wait for the writer, and warn once of a folder that it could not remove. */
static pons_status wait_written(trainer *t, pons_error *err)
{
    pons_status status = background_wait(t->writer, err);

    if (status == PONS_OK)
        tell_lost(t);
    if (t->order.kept.status != PONS_OK && strcmp(t->order.kept.text, t->kept_said.text) != 0)
        log_warning(t->experiment->log, "%s", t->order.kept.text);
    t->kept_said = t->order.kept;
    return status;
}

static pons_status touch_memory(void *context, pons_error *err)
{
    (void)err;
    snapshot_touch(context);
    return PONS_OK;
}

pons_status trainer_open_saving(trainer *t, pons_error *err)
{
    if (background_open(&t->writer, err) != PONS_OK || !trainer_writes(t))
        return err->status;
    snapshot_reserve(&t->order.snapshot, t->experiment, t->storage);
    return background_start(t->writer, touch_memory, &t->order.snapshot, err);
}

/* After interrupt_enter. Waits only for a write that is under way. */
static pons_status begin_save(trainer *t, pons_error *err)
{
    save_order *o = &t->order;

    if (wait_written(t, err) != PONS_OK || storage_fetch(t->storage, err) != PONS_OK)
        return err->status;
    t->state.applied = whole_within(storage_get(t->storage, STORAGE_APPLIED), 0, INT64_C(1) << 53);
    t->state.scale = ilogb(storage_get(t->storage, STORAGE_SCALE));
    t->state.sound = whole_within(storage_get(t->storage, STORAGE_SOUND), 0, INT64_C(1) << 53);
    o->settings = t->settings;
    o->before = t->kept.step;
    o->lost = is_lost(o);
    o->whole = o->lost || !is_kept(t);
    o->step = t->state.step;
    o->best = t->state.best_step == t->state.step && t->state.step > 0;
    o->keep = (int)t->experiment->sections.train.keep;
    if (o->whole
        && snapshot_take(&o->snapshot, t->experiment, t->storage, &t->state, err) != PONS_OK)
        return err->status;
    t->kept = t->state;
    return background_start(t->writer, write_order, o, err);
}

/* A signal leaves the seconds that a checkpoint takes for the one that answers it. */
static void note_seconds(trainer *t)
{
    interrupt_reserve(t->settings->interrupt, background_seconds(t->writer));
}

pons_status trainer_save(trainer *t, pons_error *err)
{
    if (!trainer_writes(t))
        return PONS_OK;
    trainer_note(t, "checkpoint");
    if (background_wait(t->writer, err) != PONS_OK) /* a signal need not wait for our waiting */
        return err->status;
    note_seconds(t);
    interrupt_enter(t->settings->interrupt);
    begin_save(t, err);
    return trainer_leave(t, err);
}

pons_status trainer_check_saved(trainer *t, pons_error *err)
{
    return background_check(t->writer, err);
}

pons_status trainer_save_last(trainer *t, pons_error *err)
{
    trainer_note(t, "checkpoint");
    if (background_wait(t->writer, err) != PONS_OK)
        return err->status;
    interrupt_enter(t->settings->interrupt);
    if (trainer_writes(t))
        begin_save(t, err);
    interrupt_end(t->settings->interrupt);
    interrupt_leave(t->settings->interrupt);
    return err->status == PONS_OK ? wait_written(t, err) : err->status;
}

static pons_status save_and_end(trainer *t)
{
    pons_error problem = PONS_ERROR_INIT;

    if (!trainer_writes(t))
        return PONS_INTERRUPTED;
    if (begin_save(t, &problem) == PONS_OK)
        wait_written(t, &problem);
    if (t->experiment->group != NULL)
        group_wait_heard(t->experiment->group, GROUP_HEARD_S);
    if (problem.status != PONS_OK) {
        log_line(t->experiment->log, "error: %s", problem.text);
        return problem.status;
    }
    log_line(t->experiment->log, "interrupted; step %lld was given up, step %lld is saved",
             (long long)t->state.step + 1, (long long)t->state.step);
    return PONS_INTERRUPTED;
}

pons_status trainer_save_and_end(void *context)
{
    trainer_leave_ranks(context);
    return save_and_end(context);
}

void trainer_end_with_others(void *context, pons_status status)
{
    trainer *t = context;

    if (status != PONS_INTERRUPTED)
        return;
    interrupt_enter(t->settings->interrupt);
    _exit(save_and_end(t));
}

void trainer_close_saving(trainer *t)
{
    pons_error problem = PONS_ERROR_INIT;

    if (t->writer != NULL && wait_written(t, &problem) != PONS_OK)
        log_warning(t->experiment->log, "%s", problem.text); /* another failure ends the run */
    background_close(t->writer);
    snapshot_clear(&t->order.snapshot);
}

/* ---- load ------------------------------------------------------------------------------------ */

static pons_status load_checkpoint(trainer *t, const char *folder, pons_error *err)
{
    weights_format format = snapshot_format(t->experiment);

    for (int i = 0; i < snapshot_list_count(t->experiment); i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, snapshot_list_file(i)) < 0)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        weights_read_file(t->storage, snapshot_list_groups(i), path, &format, err);
        free(path);
        if (err->status != PONS_OK)
            return err->status;
    }
    t->state = *t->settings->saved;
    if (t->settings->own)
        t->kept = t->state;
    storage_set(t->storage, STORAGE_APPLIED, (double)t->state.applied);
    storage_set(t->storage, STORAGE_SCALE, ldexp(1, (int)t->state.scale));
    storage_set(t->storage, STORAGE_SOUND, (double)t->state.sound);
    return PONS_OK;
}

pons_status trainer_load(trainer *t, pons_error *err)
{
    const char *pretrained = t->experiment->sections.train.pretrained;
    weights_format format = snapshot_format(t->experiment);
    pons_error problem = PONS_ERROR_INIT;

    if (t->settings->resume != NULL)
        return load_checkpoint(t, t->settings->resume, err);
    if (pretrained == NULL || pretrained[0] == '\0')
        return PONS_OK;
    if (weights_read_file(t->storage, WEIGHTS_MODEL, pretrained, &format, &problem) != PONS_OK)
        pons_fail(err, problem.status, "[train] pretrained: %s", problem.text);
    return err->status;
}
