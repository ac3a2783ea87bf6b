/*
 * trainer.c - the loop: steps, what falls due between them, and the end.
 *
 * Everything that a step depends on is a function of its number: the micro-batches (loader), the
 * random numbers (program), the rate (schedule). So a run that goes on from a checkpoint is the run
 * that was never stopped.
 */
#include <config.h>

#include "train/trainer.h"

#include "train/schedule.h"
#include "train/validation.h"
#include "train/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct trainer {
    experiment *experiment;
    const trainer_settings *settings;
    storage *storage;
    program *training, *evaluation;
    cache *cache;
    loader *loader;
    trainer_state state;
    int training_count, validation_count;
    int64_t first;           /* step at which this process began                                  */
    double begin, step_seconds, logged_loss;
    int64_t logged_steps;
    int64_t best_class;      /* of [train] best, -1: mean                                         */
    metric_kind best_kind;
    metric_summary *summaries;
} trainer;

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak_memory(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

/* ---- counting -------------------------------------------------------------------------------- */

int64_t trainer_total_steps(const experiment *e)
{
    const train_options *t = &e->sections.train;

    if (t->steps > 0)
        return t->steps;
    return stream_steps(t->epochs, e->data->training_count, t->batch, e->micro_batches);
}

bool trainer_finished(const experiment *e, const trainer_state *s)
{
    int64_t patience = e->sections.train.early_stop;

    return (s->finished != 0 && patience > 0 && s->stale >= patience)
        || s->step >= trainer_total_steps(e);
}

/* The rate of the step after 'step' steps. */
double trainer_rate(const experiment *e, int64_t step)
{
    const sections *s = &e->sections;
    const double m = e->micro_batches, scale[] = { 1, m, sqrt(m) };
    int64_t total = trainer_total_steps(e), batch = s->train.batch;
    schedule rate = {
        .lr = s->optimizer.lr * scale[s->distribute.lr_scaling],
        .warmup = s->schedule.warmup_steps, .multiplier = s->schedule.warmup_multiplier,
        .total = total, .operations = e->schedule.plugin->operations,
        .options = e->schedule.options
    };

    if (s->schedule.unit == 0)
        return schedule_rate(&rate, step);
    rate.total = s->train.epochs > 0 ? s->train.epochs
               : stream_epochs(total, e->data->training_count, batch, e->micro_batches);
    return schedule_rate(&rate, stream_epochs(step, e->data->training_count, batch,
                                              e->micro_batches));
}

static int64_t epochs_after(const trainer *t, int64_t steps)
{
    return stream_epochs(steps, t->training_count, t->experiment->sections.train.batch,
                         t->experiment->micro_batches);
}

/* Whether 'every' epochs have come full with this step. */
static bool falls_due(const trainer *t, int64_t step, int64_t every)
{
    return every > 0 && epochs_after(t, step) / every > epochs_after(t, step - 1) / every;
}

static bool validation_due(const trainer *t, int64_t step)
{
    const train_options *o = &t->experiment->sections.train;

    if (t->validation_count == 0 || step == 0)
        return false;
    if (o->validate_steps > 0)
        return step % o->validate_steps == 0;
    return falls_due(t, step, o->validate_every);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static weights_format format_of(const experiment *e)
{
    return (weights_format){ .flat = e->task.flat, .wide = e->device.wide };
}

static pons_status write_checkpoint(trainer *t, pons_error *err)
{
    static const char *const names[] = { "model.safetensors", "optimizer.safetensors",
                                         "ema.safetensors" };
    static const unsigned groups[] = { WEIGHTS_MODEL, WEIGHTS_OPTIMIZER, WEIGHTS_EMA };
    int lists = t->experiment->sections.train.ema_decay > 0 ? 3 : 2, made = 0;
    weights_format format = format_of(t->experiment);
    weights_list list[3];
    checkpoint_file file[4];
    state_content content;

    t->state.applied = storage_applied(t->storage);
    if (state_content_make(&content, &t->state, t->experiment, err) != PONS_OK)
        return err->status;
    file[lists] = (checkpoint_file){ "trainer.safetensors", content.content };
    for (; made < lists; made++) {
        if (weights_list_make(&list[made], t->storage, groups[made], &format, err) != PONS_OK)
            break;
        file[made] = (checkpoint_file){ names[made], list[made].content };
    }
    if (made == lists)
        checkpoint_write(t->settings->checkpoints, t->state.step, lists + 1, file, err);
    while (made-- > 0)
        weights_list_clear(&list[made]);
    state_content_clear(&content);
    return err->status;
}

static pons_status save(trainer *t, pons_error *err)
{
    const char *folder = t->settings->checkpoints;

    if (t->settings->observer.sync(t->settings->observer.context, err) != PONS_OK
        || write_checkpoint(t, err) != PONS_OK
        || checkpoint_mark(folder, "last", t->state.step, err) != PONS_OK)
        return err->status;
    if (t->state.best_step == t->state.step && t->state.step > 0
        && checkpoint_mark(folder, "best", t->state.step, err) != PONS_OK)
        return err->status;
    return checkpoint_prune(folder, (int)t->experiment->sections.train.keep, err);
}

static pons_status save_safely(trainer *t, pons_error *err)
{
    interrupt_enter(t->settings->interrupt);
    save(t, err);
    interrupt_leave(t->settings->interrupt);
    return err->status;
}

/* From the interrupt's thread: the grace is over, the running step is given up. */
static void save_and_end(void *context)
{
    trainer *t = context;
    pons_error problem = PONS_ERROR_INIT;

    if (save(t, &problem) != PONS_OK)
        log_line(t->experiment->log, "error: %s", problem.text);
    else
        log_line(t->experiment->log, "interrupted; step %lld was given up, step %lld is saved",
                 (long long)t->state.step + 1, (long long)t->state.step);
}

static pons_status load_checkpoint(trainer *t, const char *folder, pons_error *err)
{
    static const char *const names[] = { "model.safetensors", "optimizer.safetensors",
                                         "ema.safetensors" };
    static const unsigned groups[] = { WEIGHTS_MODEL, WEIGHTS_OPTIMIZER, WEIGHTS_EMA };
    int files = t->experiment->sections.train.ema_decay > 0 ? 3 : 2;
    weights_format format = format_of(t->experiment);

    for (int i = 0; i < files; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, names[i]) < 0)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        weights_read_file(t->storage, groups[i], path, &format, err);
        free(path);
        if (err->status != PONS_OK)
            return err->status;
    }
    t->state = *t->settings->saved;
    storage_set_applied(t->storage, t->state.applied);
    return PONS_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

static pons_status record(trainer *t, const char *kind, int64_t epoch, int count,
                          const pons_metric *metric, pons_error *err)
{
    pons_record r = { kind, t->state.step, epoch, count, metric };

    return t->settings->observer.record(t->settings->observer.context, &r, err);
}

/* The cases of a step, for a message. */
typedef struct case_names {
    char text[512];
    size_t used;
} case_names;

/* A step on its way. */
typedef struct step_begun {
    case_names names;
    double begin, lr, data_seconds;
    int64_t epoch;
} step_begun;

static void tell_step(trainer *t, const step_begun *s, double loss, double seconds)
{
    logger *l = t->experiment->log;
    int64_t total = t->state.total, every = t->experiment->sections.log.every;
    int64_t left = total - t->state.step;
    double eta;

    t->step_seconds = t->step_seconds > 0 ? 0.9 * t->step_seconds + 0.1 * seconds : seconds;
    t->logged_loss += loss;
    t->logged_steps++;
    eta = (double)left * t->step_seconds;
    log_progress(l, "step %lld of %lld, epoch %lld, loss %.4f, %.3f s a step, %d:%02d left",
                 (long long)t->state.step, (long long)total, (long long)s->epoch, loss,
                 t->step_seconds, (int)eta / 60, (int)eta % 60);
    if (t->state.step % every != 0 && t->state.step != total)
        return;
    log_line(l, "step %lld/%lld  epoch %lld  loss %.6f  rate %.3g  %.3f s (%.3f s waiting for "
             "data)", (long long)t->state.step, (long long)total, (long long)s->epoch,
             t->logged_loss / (double)t->logged_steps, s->lr, seconds, s->data_seconds);
    t->logged_loss = 0;
    t->logged_steps = 0;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static pons_status feed(trainer *t, const loader_batch *batch, pons_error *err)
{
    pons_tensor tensor = { 0 };
    void *image = program_input(t->training, "image", &tensor);

    if (image == NULL)
        return pons_fail(err, PONS_PLUGIN, "model '%s' does not use its image",
                         t->experiment->model.plugin->descriptor->name);
    memcpy(image, batch->image, (size_t)shape_count(tensor.shape) * sizeof *batch->image);
    void *target = program_input(t->training, "target", &tensor);
    if (target == NULL)
        return pons_fail(err, PONS_PLUGIN, "loss '%s' does not use its target",
                         t->experiment->loss.plugin->descriptor->name);
    memcpy(target, batch->label, (size_t)shape_count(tensor.shape));
    return PONS_OK;
}

static void add_names(case_names *n, const loader_batch *batch)
{
    for (int i = 0; i < batch->case_count && n->used < sizeof n->text; i++)
        n->used += (size_t)snprintf(n->text + n->used, sizeof n->text - n->used, "%s%s",
                                    n->used > 0 ? ", " : "", batch->case_id[i]);
}

static pons_status run_micro_batches(trainer *t, step_begun *s, pons_error *err)
{
    const loader_batch *batch = NULL;

    for (int m = 0; m < t->experiment->micro_batches; m++) {
        double begin = seconds_now();
        if (loader_next(t->loader, &batch, err) != PONS_OK)
            return err->status;
        s->data_seconds += seconds_now() - begin;
        add_names(&s->names, batch);
        if (feed(t, batch, err) != PONS_OK
            || program_micro(t->training, (uint64_t)m, err) != PONS_OK)
            return err->status;
    }
    s->epoch = batch->epoch + 1;
    return PONS_OK;
}

static pons_status check_finite(trainer *t, const step_result *result, const case_names *names,
                                pons_error *err)
{
    const char *tensor;

    if (result->applied)
        return PONS_OK;
    tensor = program_first_nonfinite(t->training);
    if (t->experiment->sections.train.nonfinite == 0)
        return pons_fail(err, PONS_FAILURE, "step %lld: the gradient is not finite; first tensor "
                         "'%s', cases %s\nhint: [train] nonfinite = skip goes on without such "
                         "steps",
                         (long long)t->state.step + 1,
                         tensor != NULL ? tensor : "the gradient's norm", names->text);
    log_warning(t->experiment->log, "step %lld is skipped: tensor '%s' is not finite, cases %s",
                (long long)t->state.step + 1,
                tensor != NULL ? tensor : "the gradient's norm", names->text);
    return PONS_OK;
}

/* The step is done when its record is written: a checkpoint has both or neither. */
static pons_status finish_step(trainer *t, step_begun *s, pons_error *err)
{
    step_result result = { 0 };

    if (program_step_finish(t->training, s->lr, &result, err) != PONS_OK
        || check_finite(t, &result, &s->names, err) != PONS_OK)
        return err->status;
    t->state.step++;
    const pons_metric metric[] = {
        { "loss", result.loss }, { "lr", s->lr }, { "grad_norm", result.grad_norm },
        { "seconds", seconds_now() - s->begin }, { "data_seconds", s->data_seconds },
        { "memory", peak_memory() }
    };
    tell_step(t, s, metric[0].value, metric[3].value);
    return record(t, "step", s->epoch, 6, metric, err);
}

/* Between enter and leave; after a failure nothing is there that could be saved. */
static pons_status leave_after(trainer *t, pons_error *err)
{
    if (err->status != PONS_OK)
        interrupt_end(t->settings->interrupt);
    interrupt_leave(t->settings->interrupt);
    return err->status;
}

static pons_status run_step(trainer *t, pons_error *err)
{
    step_begun s = { .begin = seconds_now(), .lr = trainer_rate(t->experiment, t->state.step) };

    if (program_step_begin(t->training, (uint64_t)t->state.step, err) != PONS_OK
        || run_micro_batches(t, &s, err) != PONS_OK)
        return err->status;
    interrupt_enter(t->settings->interrupt);
    finish_step(t, &s, err);
    return leave_after(t, err);
}

/* ---- validation ------------------------------------------------------------------------------ */

static bool stop_asked(void *context)
{
    const trainer *t = context;

    return interrupt_pending(t->settings->interrupt);
}

static double best_value(const trainer *t)
{
    const experiment *e = t->experiment;

    if (t->best_class < 0)
        return metric_summary_mean_of(t->summaries, validation_first_class(e), e->class_count,
                                      t->best_kind);
    return metric_summary_mean(&t->summaries[t->best_class], t->best_kind);
}

static pons_status record_validation(trainer *t, int cases, pons_error *err)
{
    const experiment *e = t->experiment;
    int first = validation_first_class(e), n = 0;
    pons_metric metric[2 * 257 + 1];
    arena *names = arena_new();

    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        metric[n++] = (pons_metric){ arena_format(names, "%s.mean", metric_names[kind]),
                                     metric_summary_mean_of(t->summaries, first, e->class_count,
                                                            (metric_kind)kind) };
        for (int c = first; c < e->class_count; c++)
            metric[n++] = (pons_metric){
                arena_format(names, "%s.%s", metric_names[kind], e->classes[c].name),
                metric_summary_mean(&t->summaries[c], (metric_kind)kind) };
    }
    metric[n++] = (pons_metric){ "cases", cases };
    record(t, "validation", epochs_after(t, t->state.step), n, metric, err);
    arena_free(names);
    return err->status;
}

/* Whether this validation is the best so far; the first with a value is. */
static void judge(trainer *t)
{
    double value = best_value(t);

    if (isfinite(value) && (t->state.best_step == 0 || value > t->state.best)) {
        t->state.best = value;
        t->state.best_step = t->state.step;
        t->state.stale = 0;
    } else {
        t->state.stale++;
    }
    t->state.validated = t->state.step;
    log_line(t->experiment->log, "validation after step %lld: %s %.4f%s",
             (long long)t->state.step, t->experiment->sections.train.best, value,
             t->state.best_step == t->state.step ? ", the best so far" : "");
}

static pons_status validate(trainer *t, pons_error *err)
{
    bool ema = t->experiment->sections.train.ema_decay > 0;
    validation v = { t->experiment, t->evaluation, t->cache, t->validation_count,
                     t->experiment->data->validation, stop_asked, t };
    validation_result result = { .classes = t->summaries };

    storage_use_ema(t->storage, ema);
    program_weights_changed(t->evaluation);
    validation_run(&v, &result, err);
    storage_use_ema(t->storage, false);
    program_weights_changed(t->training);
    if (err->status != PONS_OK || result.stopped)
        return err->status;
    interrupt_enter(t->settings->interrupt);
    judge(t);
    record_validation(t, result.cases, err);
    return leave_after(t, err);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Validation that falls due at the present step; one that a signal ended is done after resume. */
static pons_status validate_if_due(trainer *t, pons_error *err)
{
    if (!validation_due(t, t->state.step) || t->state.validated == t->state.step)
        return PONS_OK;
    return validate(t, err);
}

/* [train] early_stop: the run is finished before its last step. */
static void note_early_stop(trainer *t)
{
    int64_t patience = t->experiment->sections.train.early_stop;

    if (patience == 0 || t->state.stale < patience || t->state.finished != 0)
        return;
    t->state.finished = 1;
    log_line(t->experiment->log, "no better validation %lld times: training ends early",
             (long long)t->state.stale);
}

/* Where a run has to be saved besides its end. */
static bool checkpoint_due(const trainer *t)
{
    return falls_due(t, t->state.step, t->experiment->sections.train.checkpoint_every)
        || t->state.best_step == t->state.step;
}

static pons_status train(trainer *t, int64_t total, pons_error *err)
{
    int64_t saved = t->state.step;

    t->state.finished = 0; /* more patience goes on */
    if (validate_if_due(t, err) != PONS_OK)
        return err->status;
    note_early_stop(t);
    while (t->state.step < total && t->state.finished == 0
           && !interrupt_pending(t->settings->interrupt)) {
        if (run_step(t, err) != PONS_OK || validate_if_due(t, err) != PONS_OK)
            return err->status;
        note_early_stop(t);
        if (!checkpoint_due(t))
            continue;
        if (save_safely(t, err) != PONS_OK)
            return err->status;
        saved = t->state.step;
    }
    if ((saved != t->state.step || t->first == t->state.step) && save_safely(t, err) != PONS_OK)
        return err->status;
    if (t->state.step >= total || t->state.finished != 0)
        return PONS_OK;
    return pons_fail(err, PONS_INTERRUPTED, "interrupted after step %lld of %lld; start it again "
                     "to go on", (long long)t->state.step, (long long)total);
}

/* ---- open and close -------------------------------------------------------------------------- */

static pons_status find_best(trainer *t, pons_error *err)
{
    const experiment *e = t->experiment;
    const char *name = e->sections.train.best, *point = strchr(name, '.');

    for (int kind = 0; point != NULL && kind < METRIC_KIND_COUNT; kind++) {
        size_t size = strlen(metric_names[kind]);
        if ((size_t)(point - name) != size || strncmp(name, metric_names[kind], size) != 0)
            continue;
        t->best_kind = (metric_kind)kind;
        t->best_class = -1;
        if (strcmp(point + 1, "mean") == 0)
            return PONS_OK;
        for (int c = 0; c < e->class_count; c++) {
            if (strcmp(point + 1, e->classes[c].name) == 0) {
                t->best_class = c;
                return PONS_OK;
            }
        }
    }
    return pons_fail(err, PONS_CONFIG, "[train] best is '%s', expected dice.mean, iou.mean, or "
                     "dice or iou of a class", name);
}

static pons_status open_cache(trainer *t, pons_error *err)
{
    experiment *e = t->experiment;
    int count = t->training_count + t->validation_count;
    int *ranks = arena_alloc(e->memory, (size_t)count * sizeof *ranks + 1);
    cache_settings settings;

    cache_settings_fill(&e->sections, &settings);
    memcpy(ranks, e->data->training, (size_t)t->training_count * sizeof *ranks);
    memcpy(ranks + t->training_count, e->data->validation,
           (size_t)t->validation_count * sizeof *ranks);
    return cache_open(e->data, e->preprocess, count, ranks, &settings, e->log, &t->cache, err);
}

static pons_status open_loader(trainer *t, pons_error *err)
{
    const experiment *e = t->experiment;
    loader_settings settings;

    loader_settings_fill(&e->sections, &settings);
    settings.micro_batches = settings.count = e->micro_batches;
    memcpy(settings.extent, e->patch, sizeof settings.extent);
    if (loader_open(t->cache, t->training_count, e->data->training,
                    e->augment != NULL && e->augment->count > 0 ? e->augment : NULL, &settings,
                    &t->loader, err) != PONS_OK)
        return err->status;
    return loader_seek(t->loader, t->state.step, err);
}

static pons_status build(trainer *t, pons_error *err)
{
    experiment *e = t->experiment;
    uint64_t seed = (uint64_t)e->sections.experiment.seed;
    weights_format format = format_of(e);

    if (storage_new(&e->device, &t->storage, err) != PONS_OK
        || network_build_training(e, t->storage, &t->training, err) != PONS_OK)
        return err->status;
    if (t->validation_count > 0
        && network_build_evaluation(e, t->storage, &t->evaluation, err) != PONS_OK)
        return err->status;
    if (storage_initialise(t->storage, seed, err) != PONS_OK)
        return err->status;
    if (t->settings->resume != NULL)
        return load_checkpoint(t, t->settings->resume, err);
    if (e->sections.train.pretrained == NULL || e->sections.train.pretrained[0] == '\0')
        return PONS_OK;
    return weights_read_file(t->storage, WEIGHTS_MODEL, e->sections.train.pretrained, &format, err);
}

static void tell_network(const trainer *t)
{
    const experiment *e = t->experiment;
    program_facts facts;

    program_describe(t->training, &facts);
    log_line(e->log, "%d cases to train on, %d to validate; %lld parameters, %s, %d threads (%s)",
             t->training_count, t->validation_count, (long long)facts.parameter_count,
             precision_name(e->precision), e->device.facts.threads, e->device.facts.name);
    for (int i = 0; i < facts.untrained_count; i++)
        log_line(e->log, "parameter '%s' has no path from the loss and is not trained",
                 program_untrained(t->training, i));
}

static pons_status open_all(trainer *t, int64_t total, pons_error *err)
{
    t->summaries = calloc((size_t)t->experiment->class_count, sizeof *t->summaries);
    if (t->summaries == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (find_best(t, err) != PONS_OK || open_cache(t, err) != PONS_OK || build(t, err) != PONS_OK
        || open_loader(t, err) != PONS_OK
        || t->settings->observer.begin(t->settings->observer.context, err) != PONS_OK)
        return err->status;
    t->state.total = total;
    t->first = t->state.step;
    tell_network(t);
    if (t->settings->resume != NULL)
        log_line(t->experiment->log, "going on after step %lld, from '%s'",
                 (long long)t->state.step, t->settings->resume);
    return PONS_OK;
}

static void close_all(trainer *t)
{
    if (t->loader != NULL)
        loader_close(t->loader);
    if (t->cache != NULL)
        cache_close(t->cache);
    program_free(t->evaluation);
    program_free(t->training);
    if (t->storage != NULL)
        storage_free(t->storage);
    free(t->summaries);
}

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

pons_status trainer_run(experiment *e, const trainer_settings *settings, pons_error *err)
{
    trainer t = { .experiment = e, .settings = settings };
    const train_options *o = &e->sections.train;
    int64_t total = trainer_total_steps(e);

    t.training_count = e->data->training_count;
    t.validation_count = o->validate_every > 0 || o->validate_steps > 0
                         ? e->data->validation_count : 0;
    if (settings->debug) {
        t.training_count = at_most(t.training_count, 4);
        t.validation_count = at_most(t.validation_count, 1);
        total = total < 4 ? total : 4;
    }
    if (o->early_stop > 0 && t.validation_count == 0)
        return pons_fail(err, PONS_CONFIG, "[train] early_stop is %lld, but no case is validated\n"
                         "hint: [data] validation, or early_stop = 0", (long long)o->early_stop);
    if (t.training_count == 0)
        return pons_fail(err, PONS_DATA, "no case is left to train on");
    if (open_all(&t, total, err) == PONS_OK) {
        if (settings->interrupt != NULL)
            interrupt_watch(settings->interrupt, o->grace_s, save_and_end, &t);
        train(&t, total, err);
        if (settings->interrupt != NULL)
            interrupt_watch(settings->interrupt, o->grace_s, NULL, NULL);
    }
    close_all(&t);
    return err->status;
}
