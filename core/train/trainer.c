/*
 * trainer.c - the loop: steps, what falls due between them, and the end.
 *
 * Everything that a step depends on is a function of its number: the micro-batches (loader), the
 * random numbers (program), the rate (schedule). So a run that goes on from a checkpoint is the run
 * that was never stopped.
 */
#include "train/trainer_internal.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/text.h"
#include "cluster/group/group.h"
#include "graph/storage/profiler_range.h"
#include "replica/input_copy.h"

enum { SKIPPED_LINES = 3 };

/* ---- records --------------------------------------------------------------------------------- */

void trainer_tell_progress(const trainer *t, int validating)
{
    const trainer_observer *o = &t->settings->observer;
    const trainer_progress p = { t->state.step, t->total, validating, t->state.best,
                                 t->state.best_step };

    if (o->progress != NULL)
        o->progress(o->context, &p);
}

pons_status trainer_record(trainer *t, const char *kind, int64_t epoch, int count,
                          const pons_metric *metric, pons_error *err)
{
    pons_record r = { kind, t->state.step, epoch, count, metric };

    trainer_tell_progress(t, 0);
    return t->settings->observer.record(t->settings->observer.context, &r, err);
}

pons_status trainer_release_signals(trainer *t, pons_error *err)
{
    if (err->status != PONS_OK)
        signals_forbid_saving(t->settings->signals);
    signals_release(t->settings->signals);
    return err->status;
}

/* The cases of a replica's share of a step, for a message. */
typedef struct case_names {
    char text[512];
    size_t used;
} case_names;

/* A replica's share of a step. */
typedef struct share {
    case_names names;
    double data_seconds;
    step_result result;
    nonfinite_source nonfinite; /* of this replica                                                */
} share;

/* A step on its way. */
typedef struct step_begun {
    trainer *trainer;
    double begin, lr, data_seconds;
    int64_t epoch;
    share *share;            /* by replica                                                        */
} step_begun;

static void log_step(trainer *t, const step_begun *s, double loss, double seconds)
{
    logger *l = t->experiment->log;
    int64_t total = t->total, every = t->experiment->sections.log.every;

    t->step_seconds = t->step_seconds > 0 ? 0.9 * t->step_seconds + 0.1 * seconds : seconds;
    t->logged_loss += loss;
    t->logged_steps++;
    if (t->state.step % every != 0 && t->state.step != total)
        return;
    log_line(l, "step %lld/%lld  epoch %lld  loss %.7g  lr %.3g  %.3f s (%.3f s waiting for "
             "data)", (long long)t->state.step, (long long)total, (long long)s->epoch,
             t->logged_loss / (double)t->logged_steps, s->lr, seconds, s->data_seconds);
    t->logged_loss = 0;
    t->logged_steps = 0;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static void add_names(case_names *n, const loader_batch *batch)
{
    for (int i = 0; i < batch->case_count && n->used < sizeof n->text; i++)
        n->used += (size_t)snprintf(n->text + n->used, sizeof n->text - n->used, "%s%s",
                                    n->used > 0 ? ", " : "", batch->case_id[i]);
}

static pons_status read_batch(trainer *t, replica *r, share *mine, const loader_batch **batch,
                              pons_error *err)
{
    double begin = seconds_now();

    t->reading++;
    trainer_report_activity(t, "data");
    range_begin(r->device, RANGE_LOADING, range_kind_name(RANGE_LOADING));
    input_copy_next(r, t->experiment, batch, err);
    range_end(r->device);
    if (err->status != PONS_OK)
        return err->status;
    mine->data_seconds += seconds_now() - begin;
    trainer_report_activity(t, --t->reading > 0 ? "data" : "step");
    return PONS_OK;
}

static pons_status compute_share(void *context, replica *r, pons_error *err)
{
    const step_begun *s = context;
    trainer *t = s->trainer;
    share *mine = &s->share[r->index];
    const loader_batch *batch = NULL;

    *mine = (share){ .data_seconds = 0 };
    if (program_step_begin(r->training, (uint64_t)t->state.step, err) != PONS_OK)
        return err->status;
    for (int m = 0; m < t->experiment->accumulate; m++) {
        if (read_batch(t, r, mine, &batch, err) != PONS_OK)
            return err->status;
        add_names(&mine->names, batch);
        if (program_micro(r->training, (uint64_t)batch->micro_batch, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static pons_status wait_share(void *context, replica *r, pons_error *err)
{
    return program_step_wait(r->training, err);
}

/* Begin to bring the next step's inputs to the device, while it ends this one. */
static pons_status send_ahead(const trainer *t, replica *r, int64_t next, pons_error *err)
{
    if (r->device->facts.host_memory)
        return PONS_OK;
    range_begin(r->device, RANGE_LOADING, range_kind_name(RANGE_LOADING));
    input_copy_ahead(r, t->experiment, next, err);
    range_end(r->device);
    return err->status;
}

static pons_status finish_share(void *context, replica *r, pons_error *err)
{
    const step_begun *s = context;
    trainer *t = s->trainer;
    int64_t next = t->state.step + 1;

    range_begin(r->device, RANGE_UPDATE, range_kind_name(RANGE_UPDATE));
    range_begin(r->device, RANGE_OPTIMIZER, t->experiment->optimizer.plugin->descriptor->name);
    program_step_end(r->training, s->lr, err);
    range_end(r->device);
    range_end(r->device);
    if (err->status != PONS_OK || (next < t->total && send_ahead(t, r, next, err) != PONS_OK))
        return err->status;
    if (trainer_sensors_due(t))
        trainer_read_sensors(t, r);
    return program_step_result(r->training, &s->share[r->index].result, err);
}

static void keep_earlier_source(nonfinite_source *kept, const program_nonfinite *found,
                                const loader_batch *batch)
{
    case_names names = { .used = 0 };

    if (found->name == NULL || (kept->tensor[0] != '\0' && kept->place <= found->index))
        return;
    add_names(&names, batch);
    kept->place = found->index;
    snprintf(kept->tensor, sizeof kept->tensor, "%s", found->name);
    memcpy(kept->cases, names.text, sizeof kept->cases);
}

/* The share is read and computed again; the loader then stands where it stood. */
static pons_status find_nonfinite_share(void *context, replica *r, pons_error *err)
{
    const step_begun *s = context;
    trainer *t = s->trainer;
    share *mine = &s->share[r->index];
    const loader_batch *batch = NULL;
    program_nonfinite found;

    memcpy(mine->nonfinite.cases, mine->names.text, sizeof mine->nonfinite.cases);
    if (input_copy_seek(r, t->state.step, err) != PONS_OK)
        return err->status;
    for (int m = 0; m < t->experiment->accumulate; m++) {
        if (read_batch(t, r, mine, &batch, err) != PONS_OK
            || program_find_nonfinite(r->training, (uint64_t)batch->micro_batch, &found, err)
               != PONS_OK)
            return err->status;
        keep_earlier_source(&mine->nonfinite, &found, batch);
    }
    return PONS_OK;
}

/* A share that is not finite by itself. If only the sum of the shares is not, all cases of it. */
static pons_status find_source(const step_begun *s, nonfinite_source *out, pons_error *err)
{
    *out = s->share->nonfinite;
    for (int r = 1; r < s->trainer->replicas.count; r++)
        trainer_merge_sources(out, &s->share[r].nonfinite);
    if (trainer_share_source(s->trainer, out, err) != PONS_OK)
        return err->status;
    if (out->tensor[0] == '\0')
        snprintf(out->tensor, sizeof out->tensor, "the gradient's norm");
    return PONS_OK;
}

/* The quantity that made a step not finite. */
static const char *nonfinite_quantity(const step_result *result)
{
    if (!isfinite(result->grad_norm))
        return "the gradient";
    return isfinite(result->loss) ? "what a step adds to a running mean or variance" : "the loss";
}

/* Damage by the update cannot be skipped: it is in the weights. */
static pons_status check_damage(const step_begun *s, pons_error *err)
{
    for (int r = 0; r < s->trainer->replicas.count; r++)
        if (s->share[r].result.nonfinite != NULL)
            return pons_fail(err, PONS_FAILURE, "step %lld: the update of '%s' reads or writes "
                             "what is not finite; cases %s\nhint: the newest checkpoint is sound",
                             (long long)s->trainer->state.step + 1, s->share[r].result.nonfinite,
                             s->share[r].names.text);
    return PONS_OK;
}

/* The first steps have a line each, all of them are counted (tell_skipped). */
static void warn_of_skipped(trainer *t, const nonfinite_source *nonfinite)
{
    logger *l = t->experiment->log;

    if (++t->skipped > SKIPPED_LINES || !trainer_is_writer(t))
        return;
    log_warning(l, "step %lld is skipped: tensor '%s' is not finite, cases %.1000s",
                (long long)t->state.step + 1, nonfinite->tensor, nonfinite->cases);
    if (t->skipped == SKIPPED_LINES)
        log_warning(l, "further steps that are skipped are counted, and told at the end");
}

static pons_status check_finite(const step_begun *s, pons_error *err)
{
    trainer *t = s->trainer;
    const step_result *result = &s->share->result;
    nonfinite_source nonfinite;

    if (check_damage(s, err) != PONS_OK || result->applied)
        return err->status;
    if (t->experiment->precision == PRECISION_FP16 && result->scale >= 1) {
        if (trainer_is_writer(t))
            log_line(t->experiment->log, "step %lld is skipped: a gradient is too large for fp16; "
                     "the loss is scaled by %g from now on", (long long)t->state.step + 1,
                     result->scale);
        return PONS_OK;
    }
    if (replicas_run(&t->replicas, find_nonfinite_share, (void *)s, err) != PONS_OK
        || find_source(s, &nonfinite, err) != PONS_OK)
        return err->status;
    if (t->experiment->sections.train.nonfinite == 0)
        return pons_fail(err, PONS_FAILURE, "step %lld: %s is not finite; first tensor "
                         "'%s', cases %s\nhint: --set train.nonfinite=skip goes on without such "
                         "steps", (long long)t->state.step + 1, nonfinite_quantity(result),
                         nonfinite.tensor, nonfinite.cases);
    warn_of_skipped(t, &nonfinite);
    return PONS_OK;
}

/*
 * The epoch of the last step's last case, on whichever process it was (R6). Cases of the run's last
 * step beyond its last epoch fill the step and begin no epoch.
 */
static int64_t last_epoch(const trainer *t)
{
    const experiment *e = t->experiment;
    int64_t cases = t->state.step * e->sections.train.batch * e->micro_batches;
    int64_t epoch = (cases - 1) / t->epoch.count + 1, last = e->sections.train.epochs;

    return last > 0 && epoch > last ? last : epoch;
}

static pons_status report_step(trainer *t, const step_begun *s, bool sensors, pons_error *err)
{
    const step_result *result = &s->share->result;
    const step_numbers numbers = { result, s->epoch, s->lr, seconds_now() - s->begin,
                                   s->data_seconds };

    log_step(t, s, result->loss, numbers.seconds);
    if (sensors && trainer_report_sensors(t, err) != PONS_OK)
        return err->status;
    return trainer_record_step(t, &numbers, err);
}

/* The step is done when its record is written: a checkpoint has both or neither. */
static pons_status finish_step(step_begun *s, pons_error *err)
{
    trainer *t = s->trainer;
    const device *d = &t->experiment->device;
    bool sensors = trainer_sensors_due(t);

    if (replicas_run(&t->replicas, finish_share, s, err) != PONS_OK
        || check_finite(s, err) != PONS_OK)
        return err->status;
    t->state.step++;
    s->epoch = last_epoch(t);
    range_begin(d, RANGE_REPORT, range_kind_name(RANGE_REPORT));
    report_step(t, s, sensors, err);
    range_end(d);
    return err->status;
}

static pons_status check_rate(const trainer *t, double lr, pons_error *err)
{
    if (lr >= 0 && isfinite(lr))
        return PONS_OK;
    return pons_fail(err, PONS_PLUGIN, "schedule '%s' gives the rate %g for step %lld, expected 0 "
                     "or more", t->experiment->schedule.plugin->descriptor->name, lr,
                     (long long)t->state.step + 1);
}

static pons_status run_step_parts(trainer *t, share *shares, pons_error *err)
{
    step_begun s = { .trainer = t, .begin = seconds_now(), .share = shares,
                     .lr = trainer_rate(t->experiment, t->state.step) };

    if (check_rate(t, s.lr, err) != PONS_OK || trainer_stop_sum_begin(t, err) != PONS_OK
        || replicas_run(&t->replicas, compute_share, &s, err) != PONS_OK)
        return err->status;
    for (int r = 0; r < t->replicas.count; r++)
        s.data_seconds = fmax(s.data_seconds, shares[r].data_seconds);
    if (replicas_run(&t->replicas, wait_share, &s, err) != PONS_OK /* a signal need not wait too */
        || trainer_stop_sum_end(t, err) != PONS_OK)
        return err->status;
    signals_hold(t->settings->signals);
    finish_step(&s, err);
    return trainer_release_signals(t, err);
}

static pons_status run_step(trainer *t, share *shares, pons_error *err)
{
    profile_range_begin(RANGE_OTHER, "step");
    run_step_parts(t, shares, err);
    profile_range_end();
    if (t->profile != NULL && err->status == PONS_OK)
        profile_count_step(profile_of_thread());
    return err->status;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Run 'work' in a range that profilers show. */
static pons_status run_phase(trainer *t, range_kind phase,
                             pons_status (*work)(trainer *t, pons_error *err), pons_error *err)
{
    const device *d = &t->experiment->device;

    range_begin(d, phase, range_kind_name(phase));
    work(t, err);
    range_end(d);
    return err->status;
}

/*
 * Work that an earlier process may have left: a validation that a signal put off, a checkpoint
 * without its mark. The run is then the same as one that was never stopped.
 */
static pons_status resume_run(trainer *t, pons_error *err)
{
    t->state.finished = 0; /* more patience goes on */
    if (trainer_validation_due(t)
        && run_phase(t, RANGE_VALIDATION, trainer_validate, err) != PONS_OK)
        return err->status;
    trainer_note_early_stop(t);
    return t->settings->resume != NULL ? run_phase(t, RANGE_CHECKPOINT, trainer_save, err)
                                       : PONS_OK;
}

/* The last lines of a training are its length and its best validation. */
static void log_summary(trainer *t, int64_t steps, double seconds)
{
    logger *l = t->experiment->log;
    long long whole = (long long)(seconds + 0.5);

    if (whole < 60)
        log_line(l, "%lld step%s took %.1f s in all", (long long)steps, text_plural(steps),
                 seconds);
    else
        log_line(l, "%lld step%s took %lld:%02lld:%02lld in all", (long long)steps,
                 text_plural(steps), whole / 3600, whole / 60 % 60, whole % 60);
    if (t->state.best_step > 0)
        log_line(l, "best validation: %s %.4f after step %lld",
                 t->experiment->sections.train.best, t->state.best,
                 (long long)t->state.best_step);
}

/* The other ranks have skipped the same steps. */
static void tell_skipped(const trainer *t, int64_t steps)
{
    if (t->skipped > 0 && trainer_is_writer(t))
        log_warning(t->experiment->log, "%lld of %lld step%s skipped: a tensor was not finite",
                    (long long)t->skipped, (long long)steps, text_plural(steps));
}

static pons_status train_steps(trainer *t, share *shares, pons_error *err)
{
    double begin = seconds_now();
    int64_t first;

    if (resume_run(t, err) != PONS_OK)
        return err->status;
    first = t->state.step;
    trainer_tell_progress(t, 0);
    while (t->state.step < t->total && t->state.finished == 0
           && !trainer_stop_due(t)) {
        if (run_step(t, shares, err) != PONS_OK || trainer_check_saved(t, err) != PONS_OK
            || (trainer_validation_due(t)
                && run_phase(t, RANGE_VALIDATION, trainer_validate, err) != PONS_OK))
            return err->status;
        trainer_note_early_stop(t);
        if (trainer_checkpoint_due(t)
            && run_phase(t, RANGE_CHECKPOINT, trainer_save, err) != PONS_OK)
            return err->status;
    }
    if (run_phase(t, RANGE_CHECKPOINT, trainer_save_and_wait, err) != PONS_OK)
        return err->status;
    tell_skipped(t, t->state.step - first);
    if ((t->state.step >= t->total || t->state.finished != 0) && !trainer_validation_due(t)) {
        log_summary(t, t->state.step - first, seconds_now() - begin);
        return PONS_OK;
    }
    return pons_fail(err, PONS_INTERRUPTED, "interrupted after step %lld of %lld, which is saved; "
                     "the same command goes on", (long long)t->state.step, (long long)t->total);
}

/* Training ends by itself: neither a signal nor another process has it saved any more. */
static void end_signals_and_peers(trainer *t)
{
    signals *s = t->settings->signals;

    if (t->experiment->group != NULL)
        group_set_exit_hook(t->experiment->group, NULL, NULL);
    if (s != NULL)
        signals_set_save(s, t->experiment->sections.train.grace_s, NULL, NULL);
}

/* Save the state before the step that another process has given up. */
static void save_for_peer(trainer *t, const pons_error *cause)
{
    pons_error problem = PONS_ERROR_INIT;

    group_publish_interruption(t->experiment->group, cause);
    if (trainer_save_and_wait(t, &problem) != PONS_OK)
        log_warning(t->experiment->log, "%s", problem.text);
}

/* A single process has a watchdog of its own, as a group has. */
static pons_status open_watch(trainer *t, pons_error *err)
{
    const watchdog_settings alone = { .size = 1,
                                      .timeout_s = t->experiment->sections.distribute.timeout_s };

    return t->experiment->group != NULL || t->settings->unwatched
           ? PONS_OK : watchdog_open(&alone, &t->watchdog, err);
}

/* Ranges of threads that prepare patches go to the profiler of the first device. */
static void mark_ranges(trainer *t)
{
    const device *d = &t->experiment->device;

    t->marker = (profile_marker){ d->handle, d->operations->colored_range_begin,
                                  d->operations->profiling.range_end };
    if (t->marker.begin != NULL && t->marker.end != NULL)
        profile_set_marker(&t->marker);
}

pons_status trainer_run(experiment *e, const trainer_settings *settings, pons_error *err)
{
    trainer t = { .experiment = e, .settings = settings, .kept = { .step = -1 } };
    double grace_s = e->sections.train.grace_s;

    if (open_watch(&t, err) != PONS_OK)
        return err->status;
    mark_ranges(&t);
    if (run_phase(&t, RANGE_START, trainer_open, err) == PONS_OK) {
        if (settings->signals != NULL)
            signals_set_save(settings->signals, grace_s, trainer_end_by_signal, &t);
        if (e->group != NULL)
            group_set_exit_hook(e->group, trainer_end_by_peer, &t);
        train_steps(&t, arena_alloc(e->memory, (size_t)e->device_count * sizeof(share)), err);
        if (err->status == PONS_INTERRUPTED && e->group != NULL && !t.stop_agreed)
            save_for_peer(&t, err);
        end_signals_and_peers(&t);
    }
    trainer_close(&t, err);
    profile_set_marker(NULL);
    if (t.watchdog != NULL)
        watchdog_close(t.watchdog);
    return err->status;
}
