/*
 * bench_experiment.c - processes and experiment around a measurement.
 */
#include "cli/bench/bench_experiment.h"

#include "experiment/processes.h"

pons_status bench_experiment_run(const invocation *call, config *c, bench_work *work,
                                 void *context, pons_error *err)
{
    processes joined = { .group = NULL };
    experiment_overrides known = { .processes = &joined };
    experiment *e = NULL;
    sections s;
    int wanted = 0;

    if (sections_fill(c, &s, err) != PONS_OK || processes_wanted(c, &s, &wanted, err) != PONS_OK)
        return err->status;
    if (wanted > 0)
        return relaunch_under_launcher(call, err);
    if (processes_open(c, &s, call->log, &joined, err) == PONS_OK
        && experiment_open(c, EXPERIMENT_TRAIN, &known, call->log, &e, err) == PONS_OK) {
        dataset_log(e->data, call->log);
        work(context, e, err);
    }
    processes_close(&joined, err);
    experiment_close(e);
    return err->status;
}
