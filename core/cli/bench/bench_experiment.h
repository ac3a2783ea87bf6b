/*
 * bench_experiment.h - the experiment of a command that measures training steps.
 */
#ifndef CORE_CLI_BENCH_BENCH_EXPERIMENT_H
#define CORE_CLI_BENCH_BENCH_EXPERIMENT_H

#include "cli/command.h"
#include "experiment/experiment.h"

/* The measurement, in every process of the experiment's mode. */
typedef pons_status bench_work(void *context, experiment *e, pons_error *err);

/*
 * Open the experiment of 'c' as a training does, and do 'work': as one of the mode's processes, or,
 * with mode = ddp outside of a launcher, as the launcher of this command line.
 */
pons_status bench_experiment_run(const invocation *call, config *c, bench_work *work,
                                 void *context, pons_error *err);

#endif
