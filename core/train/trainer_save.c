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

#include "cluster/group/group.h"
#include "train/trainer_internal.h"

/* ---- save ------------------------------------------------------------------------------------ */

/* Compare the states without 'total', which may change before the next step. */
static bool is_kept(const trainer *t)
{
    trainer_state kept = t->kept;

    kept.total = t->state.total;
    return memcmp(&kept, &t->state, sizeof kept) == 0;
}

/* True if somebody has removed or renamed the checkpoint before this one. */
static bool is_lost(const save_order *o)
{
    return o->before >= 0 && !checkpoint_is_there(o->settings->checkpoints, o->before);
}

static pons_status write_contents(const save_order *o, pons_error *err)
{
    if (!o->whole || checkpoint_contents_check(&o->contents, err) != PONS_OK)
        return err->status;
    return checkpoint_write(o->settings->checkpoints, o->step, &o->contents.list, err);
}

/* Write records of steps, then the checkpoint, then the marks that name it. */
static pons_status write_all(const save_order *o, pons_error *err)
{
    const trainer_settings *to = o->settings;

    if (to->observer.sync(to->observer.context, err) != PONS_OK
        || write_contents(o, err) != PONS_OK
        || checkpoint_mark(to->checkpoints, "last", o->step, err) != PONS_OK)
        return err->status;
    return o->best ? checkpoint_mark(to->checkpoints, "best", o->step, err) : PONS_OK;
}

/* Write once more if the folder was removed meanwhile. */
static pons_status write_twice(const save_order *o, pons_error *err)
{
    if (write_all(o, err) != PONS_OK && o->whole && is_lost(o)) {
        *err = (pons_error)PONS_ERROR_INIT;
        write_all(o, err);
    }
    return err->status;
}

/*
 * A run whose folder lacks a needed file ends. The checkpoint is written first: nothing else has
 * the steps since the last one. If the last one is missing as well, somebody is removing the whole
 * folder, and nothing is written.
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

/* The writer's job. Old checkpoints that cannot be removed are no failure. */
static pons_status write_order(void *context, pons_error *err)
{
    save_order *o = context;

    host_range_begin(RANGE_OTHER, "write a checkpoint");
    write_in_whole(o, err);
    host_range_end();
    if (err->status != PONS_OK)
        return err->status;
    o->lost = o->lost || is_lost(o);
    o->kept = (pons_error)PONS_ERROR_INIT;
    checkpoint_prune(o->settings->checkpoints, o->keep, &o->kept);
    return PONS_OK;
}

/* If the whole folder is missing, an error ends the run instead. */
static void warn_lost(trainer *t)
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
    pons_status status = worker_wait(t->writer, err);

    if (status == PONS_OK)
        warn_lost(t);
    if (t->order.kept.status != PONS_OK && strcmp(t->order.kept.text, t->kept_said.text) != 0)
        log_warning(t->experiment->log, "%s", t->order.kept.text);
    t->kept_said = t->order.kept;
    return status;
}

static pons_status touch_memory(void *context, pons_error *err)
{
    (void)err;
    checkpoint_contents_touch(context);
    return PONS_OK;
}

pons_status trainer_open_saving(trainer *t, pons_error *err)
{
    if (worker_open(WORKER_LOW, "a thread that works beside the steps", &t->writer, err) != PONS_OK
        || !trainer_is_writer(t))
        return err->status;
    checkpoint_contents_reserve(&t->order.contents, t->experiment, t->storage);
    return worker_start(t->writer, touch_memory, &t->order.contents, err);
}

/* Requires held signals. Waits only for a write that is under way. */
static pons_status begin_save(trainer *t, pons_error *err)
{
    save_order *o = &t->order;

    if (wait_written(t, err) != PONS_OK)
        return err->status;
    o->settings = t->settings;
    o->before = t->kept.step;
    o->lost = is_lost(o);
    o->whole = o->lost || !is_kept(t);
    o->step = t->state.step;
    o->best = t->state.best_step == t->state.step && t->state.step > 0;
    o->keep = (int)t->experiment->sections.train.keep;
    if (o->whole && checkpoint_contents_make(&o->contents, t->experiment, t->storage, &t->state,
                                             err) != PONS_OK)
        return err->status;
    t->kept = t->state;
    return worker_start(t->writer, write_order, o, err);
}

/* The grace of a signal leaves the seconds that the last checkpoint took. */
static void note_seconds(trainer *t)
{
    signals_reserve(t->settings->signals, worker_seconds(t->writer));
}

pons_status trainer_save(trainer *t, pons_error *err)
{
    if (!trainer_is_writer(t))
        return PONS_OK;
    trainer_report_activity(t, "checkpoint");
    if (worker_wait(t->writer, err) != PONS_OK) /* a signal need not wait for our waiting */
        return err->status;
    note_seconds(t);
    signals_hold(t->settings->signals);
    begin_save(t, err);
    return trainer_release_signals(t, err);
}

pons_status trainer_check_saved(trainer *t, pons_error *err)
{
    return worker_check(t->writer, err);
}

pons_status trainer_save_and_wait(trainer *t, pons_error *err)
{
    trainer_report_activity(t, "checkpoint");
    if (worker_wait(t->writer, err) != PONS_OK)
        return err->status;
    signals_hold(t->settings->signals);
    if (trainer_is_writer(t))
        begin_save(t, err);
    signals_forbid_saving(t->settings->signals);
    signals_release(t->settings->signals);
    return err->status == PONS_OK ? wait_written(t, err) : err->status;
}

static pons_status save_last_complete_step(trainer *t)
{
    pons_error problem = PONS_ERROR_INIT;

    if (!trainer_is_writer(t))
        return PONS_INTERRUPTED;
    if (begin_save(t, &problem) == PONS_OK)
        wait_written(t, &problem);
    if (t->experiment->group != NULL)
        group_wait_acknowledged(t->experiment->group, GROUP_ACKNOWLEDGE_S);
    if (problem.status != PONS_OK) {
        log_line(t->experiment->log, "error: %s", problem.text);
        return problem.status;
    }
    log_line(t->experiment->log, "interrupted; step %lld was given up, step %lld is saved",
             (long long)t->state.step + 1, (long long)t->state.step);
    return PONS_INTERRUPTED;
}

pons_status trainer_end_by_signal(void *context)
{
    trainer_announce_give_up(context);
    return save_last_complete_step(context);
}

void trainer_end_by_peer(void *context, pons_status status)
{
    trainer *t = context;

    if (status != PONS_INTERRUPTED)
        return;
    signals_hold(t->settings->signals);
    _exit(save_last_complete_step(t));
}

void trainer_close_saving(trainer *t)
{
    pons_error problem = PONS_ERROR_INIT;

    if (t->writer != NULL && wait_written(t, &problem) != PONS_OK)
        log_warning(t->experiment->log, "%s", problem.text); /* another failure ends the run */
    worker_close(t->writer);
    checkpoint_contents_clear(&t->order.contents);
}

/* ---- load ------------------------------------------------------------------------------------ */

static pons_status load_checkpoint(trainer *t, const char *folder, pons_error *err)
{
    tensor_format format = checkpoint_contents_format(t->experiment);
    const contents_weights *file;

    for (int i = 0; (file = checkpoint_contents_weights(t->experiment, i)) != NULL; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, file->name) < 0)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        tensor_names_read_file(t->storage, file->groups, path, &format, err);
        free(path);
        if (err->status != PONS_OK)
            return err->status;
    }
    t->state = *t->settings->saved;
    if (t->settings->own)
        t->kept = t->state;
    storage_set(t->storage, STORAGE_APPLIED, (double)t->state.applied);
    storage_set(t->storage, STORAGE_SCALE, ldexp(1, (int)t->state.scale));
    storage_set(t->storage, STORAGE_FINITE_STEPS, (double)t->state.sound);
    return PONS_OK;
}

pons_status trainer_load(trainer *t, pons_error *err)
{
    if (t->settings->resume != NULL)
        return load_checkpoint(t, t->settings->resume, err);
    return checkpoint_contents_load_pretrained(t->experiment, t->storage, err);
}
