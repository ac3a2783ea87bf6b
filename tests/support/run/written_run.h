/*
 * written_run.h - the files of a run: its checkpoints, whether they are complete, and a comparison
 * with those of another run. The folder of a run is root/runs/NAME.
 */
#ifndef TESTS_WRITTEN_RUN_H
#define TESTS_WRITTEN_RUN_H

#include "checkpoint/checkpoint.h"

#include "support/run/run_pons.h"

bool root_has(const char *name);

/* The step of 'step-00000012' in a file's first line or a folder's path; -1: there is none. */
int64_t step_of_name(const char *text);

int64_t run_marked_step(const char *run, const char *mark);

/*
 * Verify every checkpoint with its final name; returns the newest step, or -1 without a checkpoint.
 */
int64_t run_newest_checkpoint(const char *run);

/*
 * Two runs are equal but for times and memory. Compared are metrics.jsonl and the named files of
 * the checkpoints that 'last' names. The first difference is printed.
 */
bool same_runs(const char *a, const char *b, const char *files);

#define TENSOR_FILES "model optimizer ema"

#endif
