/*
 * rate_measure.c - the steps of a sweep: those of a training, but for the rate.
 */
#include "bench/rate_measure.h"

#include "base/clock.h"
#include "base/progress.h"
#include "bench/training_cases.h"
#include "cluster/watchdog/watchdog.h"
#include "replica/input_copy.h"
#include "train/checkpoint_contents.h"

typedef struct sweep_run {
    experiment *experiment;
    const rate_sweep *sweep;
    replicas replicas;
    cache *cache;
    struct watchdog *alone;   /* of a single process; a group has its own                         */
    int step;
    step_result result;       /* of the first replica, the same on each                           */
} sweep_run;

/* Run a step of a replica. */
static pons_status run_step(void *context, replica *r, pons_error *err)
{
    sweep_run *s = context;
    const experiment *e = s->experiment;
    const loader_batch *batch;
    step_result result;

    if (program_step_begin(r->training, (uint64_t)s->step, err) != PONS_OK)
        return err->status;
    for (int m = 0; m < e->accumulate; m++) {
        if (input_copy_next(r, e, &batch, err) != PONS_OK
            || program_micro(r->training, (uint64_t)batch->micro_batch, err) != PONS_OK)
            return err->status;
    }
    if (program_step_end(r->training, rate_sweep_at(s->sweep, s->step), err) != PONS_OK
        || (s->step + 1 < s->sweep->steps && input_copy_ahead(r, e, s->step + 1, err) != PONS_OK)
        || program_step_result(r->training, &result, err) != PONS_OK)
        return err->status;
    if (r->index == 0)
        s->result = result;
    return PONS_OK;
}

static pons_status run_sweep(sweep_run *s, rate_curve *out, pons_error *err)
{
    experiment *e = s->experiment;
    char left[PROGRESS_LEFT];
    double begin;

    if (replicas_open(e, REPLICAS_TRAINING, &s->replicas, err) != PONS_OK
        || training_cases_open(e, REPLICAS_TRAINING, &s->replicas, &s->cache, err) != PONS_OK
        || checkpoint_contents_load_pretrained(e, s->replicas.item[0].storage, err) != PONS_OK)
        return err->status;
    replicas_copy_first(&s->replicas);
    begin = seconds_now();
    for (s->step = 0; s->step < s->sweep->steps; s->step++) {
        double rate = rate_sweep_at(s->sweep, s->step);
        if (s->alone != NULL)
            watchdog_note(s->alone, s->step, "step");
        if (replicas_run(&s->replicas, run_step, s, err) != PONS_OK)
            return err->status;
        log_progress(e->log, "step %d of %d%s, rate %.3g, loss %.4g", s->step + 1, s->sweep->steps,
                     progress_left(begin, s->step + 1, s->sweep->steps, left), rate,
                     s->result.loss);
        if (!rate_curve_add(out, rate, s->result.loss))
            break;
    }
    return PONS_OK;
}

pons_status rate_measure(experiment *e, const rate_sweep *sweep, rate_curve *out,
                         pons_error *err)
{
    const watchdog_settings alone = { .size = 1, .timeout_s = e->sections.distribute.timeout_s };
    sweep_run s = { .experiment = e, .sweep = sweep };

    if (e->group == NULL && watchdog_open(&alone, &s.alone, err) != PONS_OK)
        return err->status;
    run_sweep(&s, out, err);
    if (s.alone != NULL)
        watchdog_announce_exit_alone(s.alone, err);
    replicas_close(&s.replicas);
    if (s.cache != NULL)
        cache_close(s.cache);
    if (s.alone != NULL)
        watchdog_close(s.alone);
    return err->status;
}
