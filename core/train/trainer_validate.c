/*
 * trainer_validate.c - validation within a training: the record, the best one, early stop.
 */
#include "train/trainer_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text/text.h"
#include "data/dataset/class_list.h"
#include "evaluate/validation_loss.h"

/* Seconds of a validation that are worth a line. */
static const double COST_SECONDS = 1;

static bool validation_stop_due(void *context)
{
    const trainer *t = context;

    trainer_report_activity(t, "validation"); /* windows are progress */
    trainer_tell_progress(t, t->validation_count);
    return trainer_stop_wanted(t);
}

/* The mean over classes, or of the values that whole cases have. */
static double mean_value(const trainer *t, metric_kind kind)
{
    const experiment *e = t->experiment;

    if (metric_facts[kind].source == METRIC_OF_CASE)
        return metric_summary_mean(&t->summaries[e->class_count], kind);
    return metric_summary_mean_of(t->summaries, validation_first_class(e), e->class_count, kind);
}

static best_score score_of_best(const trainer *t)
{
    const experiment *e = t->experiment;
    metric_kind kind = e->best.kind;
    int class = e->best.class_index;

    if (class >= 0)
        return (best_score){ metric_summary_mean(&t->summaries[class], kind),
                             t->summaries[class].undefined[kind] };
    return (best_score){ mean_value(t, kind),
                         metric_facts[kind].source == METRIC_OF_CASE ? 0
                         : metric_summary_undefined_of(t->summaries, validation_first_class(e),
                                                       e->class_count, kind) };
}

/* The metrics of a record: those of the task and the one that selects the best checkpoint. */
static metric_set recorded_metrics(const experiment *e)
{
    return task_rules_of(&e->sections)->recorded | 1u << e->best.kind;
}

/* The end of the classes with values of their own; a record of more classes has the means alone. */
static int recorded_classes(const experiment *e)
{
    return e->class_count <= CLASS_COUNT_MAX ? e->class_count : 0;
}

/* 'loss' is that of validation_loss.h, if there is one. */
static pons_status record_validation(trainer *t, int cases, double loss, double seconds,
                                     pons_error *err)
{
    const experiment *e = t->experiment;
    int first = validation_first_class(e), end = recorded_classes(e), n = 0;
    pons_metric metric[METRIC_KIND_COUNT * (CLASS_COUNT_MAX + 1) + 3];
    arena *names = arena_new();

    if (trainer_has_validation_loss(t))
        metric[n++] = (pons_metric){ "loss", loss };
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (!metric_set_has(recorded_metrics(e), (metric_kind)kind))
            continue;
        metric[n++] = (pons_metric){ arena_format(names, "%s.mean", metric_facts[kind].name),
                                     mean_value(t, (metric_kind)kind) };
        for (int c = first; c < end && metric_facts[kind].source != METRIC_OF_CASE; c++)
            metric[n++] = (pons_metric){
                arena_format(names, "%s.%s", metric_facts[kind].name, e->classes[c].name),
                metric_summary_mean(&t->summaries[c], (metric_kind)kind) };
    }
    metric[n++] = (pons_metric){ "cases", cases };
    metric[n++] = (pons_metric){ "seconds", seconds };
    trainer_record(t, "validation", trainer_epochs(t, t->state.step), n, metric, err);
    arena_free(names);
    return err->status;
}

/* Note whether this validation is the best so far; the first one with a value is. */
static void note_best(trainer *t)
{
    best_score score = score_of_best(t), best = { t->state.best, t->state.best_undefined };
    char lacks[64] = "";

    if (t->state.best_step == 0 ? isfinite(score.value)
                                : best_metric_improves(t->experiment->best, score, best)) {
        t->state.best = score.value;
        t->state.best_undefined = score.undefined;
        t->state.best_step = t->state.step;
        t->state.stale = 0;
    } else {
        t->state.stale++;
    }
    t->state.validated = t->state.step;
    if (score.undefined > 0)
        snprintf(lacks, sizeof lacks, ", %lld value%s undefined", (long long)score.undefined,
                 text_plural(score.undefined));
    log_line(t->experiment->log, "validation after step %lld: %s %.4f%s%s",
             (long long)t->state.step, t->experiment->sections.train.best, score.value, lacks,
             t->state.best_step == t->state.step ? ", the best so far" : "");
}

/* Once, say that validations take longer than the steps between two of them. */
static void note_cost(trainer *t, int64_t steps, double seconds)
{
    const train_options *o = &t->experiment->sections.train;
    double trained = (double)steps * t->step_seconds;
    bool by_steps = o->validate_steps > 0;
    double interval = (double)(by_steps ? o->validate_steps : o->validate_every);
    double better = ceil(interval * 9 * seconds / trained);
    char advice[96] = "";

    if (t->told_cost || steps <= 0 || seconds < COST_SECONDS || seconds <= trained)
        return;
    t->told_cost = true;
    if (better / interval * (double)steps < (double)t->total)
        snprintf(advice, sizeof advice, "; --set train.%s=%.0f makes it a tenth of the time",
                 by_steps ? "validate_steps" : "validate_every", better);
    log_line(t->experiment->log, "a validation takes %.1f s, the %lld step%s before it took %.2f s"
             "%s", seconds, (long long)steps, text_plural(steps), trained, advice);
}

/* Let evaluation programs read the averages, or the weights again. */
static void read_averages(trainer *t, bool ema)
{
    for (int i = 0; i < t->replicas.count; i++) {
        replica *r = &t->replicas.item[i];

        storage_use_ema(r->storage, ema);
        program_weights_changed(r->evaluation);
        program_weights_changed(r->training);
        if (r->loss != NULL)
            program_weights_changed(r->loss);
    }
}

static void note_case(void *context, const scored_case *c)
{
    const trainer_observer *o = &((const trainer *)context)->settings->observer;

    o->predicted(o->context, c);
}

static pons_status note_cases(const trainer *t, const validation *v,
                              const validation_result *result, pons_error *err)
{
    const trainer_observer *o = &t->settings->observer;
    const experiment *e = t->experiment;
    const class_ranking images = { v->count, e->class_count, result->label, result->probability };
    const validated_cases done = { .experiment = e, .step = t->state.step, .count = v->count,
                                   .ranks = v->ranks, .metrics = v->metrics,
                                   .first_class = validation_first_class(e),
                                   .score = result->scores, .cache = v->cache,
                                   .images = result->probability != NULL ? &images : NULL };

    return o->validated != NULL ? o->validated(o->context, &done, err) : PONS_OK;
}

/* Ask for what an observer wants to know of each case. */
static pons_status ask_for_scores(const trainer *t, validation_result *out, pons_error *err)
{
    const experiment *e = t->experiment;

    if (t->settings->observer.validated == NULL)
        return PONS_OK;
    out->images = e->sections.experiment.task == TASK_CLASSIFICATION;
    if (out->images)
        return PONS_OK;
    out->scores = calloc((size_t)(t->validation_count * e->class_count), sizeof *out->scores);
    return out->scores != NULL ? PONS_OK
                               : pons_fail(err, PONS_DEVICE, "out of memory for a validation");
}

/* Predict and score the cases, and compute the loss of their patches. */
static pons_status measure(trainer *t, const validation *v, validation_result *result,
                           double *loss, pons_error *err)
{
    bool ema = t->experiment->sections.train.ema_decay > 0;

    read_averages(t, ema);
    if (validation_run(v, result, err) == PONS_OK && !result->interrupted
        && trainer_has_validation_loss(t))
        validation_loss_run(v, loss, err);
    read_averages(t, false);
    return err->status;
}

static pons_status validate_now(trainer *t, pons_error *err)
{
    const experiment *e = t->experiment;
    validation v = { .replicas = &t->replicas, .cache = t->cache, .count = t->validation_count,
                     .ranks = e->data->validation, .metrics = recorded_metrics(e),
                     .stop = validation_stop_due, .context = t,
                     .scored = t->settings->observer.predicted != NULL ? note_case : NULL };
    validation_result result = { .classes = t->summaries };
    int64_t steps = t->state.step - t->state.validated;
    double begin = seconds_now(), loss = NAN;

    if (ask_for_scores(t, &result, err) != PONS_OK)
        return err->status;
    trainer_tell_progress(t, v.count);
    measure(t, &v, &result, &loss, err);
    t->stop_agreed = t->stop_agreed || (result.interrupted && e->group != NULL);
    if (err->status == PONS_OK && !result.interrupted) {
        signals_hold(t->settings->signals);
        note_best(t);
        note_cost(t, steps, seconds_now() - begin);
        if (note_cases(t, &v, &result, err) == PONS_OK)
            record_validation(t, result.cases, loss, seconds_now() - begin, err);
        trainer_release_signals(t, err);
    }
    free(result.scores);
    free(result.label);
    free(result.probability);
    return err->status;
}

pons_status trainer_validate(trainer *t, pons_error *err)
{
    return trainer_validation_due(t) ? validate_now(t, err) : PONS_OK;
}

void trainer_note_early_stop(trainer *t)
{
    int64_t patience = t->experiment->sections.train.early_stop;

    if (patience == 0 || t->state.stale < patience || t->state.finished != 0)
        return;
    t->state.finished = 1;
    log_line(t->experiment->log, "no better validation %lld times: training ends early",
             (long long)t->state.stale);
}
