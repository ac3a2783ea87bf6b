/*
 * trainer_plan.c - the plan of a run: number of steps, rate, validations, checkpoints. Everything
 * follows from the number of a step.
 */
#include "train/trainer_internal.h"

#include <math.h>

#include "base/integer.h"
#include "data/loader/epoch_order.h"
#include "experiment/data_settings.h"
#include "train/lr_schedule.h"

int64_t trainer_total_steps(const experiment *e)
{
    const train_options *t = &e->sections.train;

    if (t->steps > 0)
        return t->steps;
    return epoch_order_steps(t->epochs, e->epoch.count, t->batch, e->micro_batches);
}

void trainer_plan_counts(trainer *t)
{
    const experiment *e = t->experiment;
    const train_options *o = &e->sections.train;

    t->training_count = e->data->training_count;
    t->validation_count = o->validate_every > 0 || o->validate_steps > 0
                          ? e->data->validation_count : 0;
    t->total = trainer_total_steps(e);
    if (t->settings->debug) {
        t->training_count = min_int(t->training_count, 4);
        t->validation_count = min_int(t->validation_count, 1);
        t->total = min_i64(t->total, TRAINER_DEBUG_STEPS);
    }
    t->epoch = data_case_window(&e->sections.data, t->training_count, e->micro_batches);
}

bool trainer_finished(experiment *e, const trainer_settings *settings)
{
    const trainer_state *s = settings->saved;
    trainer t = { .experiment = e, .settings = settings, .state = *s };
    int64_t patience = e->sections.train.early_stop;
    bool early = s->finished != 0 && patience > 0 && s->stale >= patience;

    trainer_plan_counts(&t);
    return (early || s->step >= t.total) && !trainer_validation_due(&t)
        && checkpoint_is_marked(settings->checkpoints, "last", s->step)
        && (s->best_step != s->step
            || checkpoint_is_marked(settings->checkpoints, "best", s->step));
}

/* The epoch in which the step after 'step' steps begins. */
static int64_t epoch_of(const experiment *e, int64_t step)
{
    return epoch_order_epochs(step, e->epoch.count, e->sections.train.batch,
                              e->micro_batches);
}

/* The rate of the step after 'step' steps. */
double trainer_rate(const experiment *e, int64_t step)
{
    const sections *s = &e->sections;
    const double m = e->micro_batches, scale[] = { 1, m, sqrt(m) };
    int64_t total = trainer_total_steps(e);
    schedule rate = {
        .lr = s->optimizer.lr * scale[s->distribute.lr_scaling],
        .warmup = s->schedule.warmup_steps, .multiplier = s->schedule.warmup_multiplier,
        .total = total, .operations = e->schedule.plugin->operations,
        .options = e->schedule.options
    };

    if (s->schedule.unit == 0)
        return lr_schedule_rate(&rate, step);
    rate.total = s->train.epochs > 0 ? s->train.epochs : epoch_of(e, total - 1) + 1;
    return lr_schedule_rate(&rate, epoch_of(e, step));
}

int64_t trainer_epochs(const trainer *t, int64_t steps)
{
    return epoch_order_epochs(steps, t->epoch.count, t->experiment->sections.train.batch,
                              t->experiment->micro_batches);
}

/* True if this step completes a multiple of 'every' epochs. */
static bool epochs_due(const trainer *t, int64_t step, int64_t every)
{
    return every > 0 && trainer_epochs(t, step) / every > trainer_epochs(t, step - 1) / every;
}

bool trainer_has_validation_loss(const trainer *t)
{
    return t->validation_count > 0 && t->experiment->sections.train.validate_loss;
}

bool trainer_validation_due(const trainer *t)
{
    const train_options *o = &t->experiment->sections.train;
    int64_t step = t->state.step;

    if (t->validation_count == 0 || step == 0 || step == t->state.validated)
        return false;
    if (o->validate_steps > 0)
        return step % o->validate_steps == 0;
    return epochs_due(t, step, o->validate_every);
}

bool trainer_checkpoint_due(const trainer *t)
{
    return epochs_due(t, t->state.step, t->experiment->sections.train.checkpoint_every)
        || t->state.best_step == t->state.step;
}
