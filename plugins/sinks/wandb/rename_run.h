/*
 * rename_run.h - another project, entity or name for a run that has begun.
 */
#ifndef PLUGINS_SINKS_WANDB_RENAME_RUN_H
#define PLUGINS_SINKS_WANDB_RENAME_RUN_H

#include <pons/sink.h>

#include "sinks/wandb/run_record.h"

/*
 * Give the run of a file these names. A file that has others is replaced by a copy of its whole
 * records; one that is absent stays so.
 */
pons_status rename_run(const char *path, const run_facts *run, pons_error *err);

#endif
