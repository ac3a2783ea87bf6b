/*
 * tiny_run.h - a training of very short steps with every kind of state that a checkpoint restores:
 * augmentation, dropout, running statistics, accumulation, averages, validation, epochs that end
 * inside a step.
 */
#ifndef TESTS_TINY_RUN_H
#define TESTS_TINY_RUN_H

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/json.h"

#include "support/run/written_run.h"

/* Make a dataset of four cases, three of them for training. */
void make_tiny_run(void);

/* Step records in the run's metrics.jsonl. */
int steps_recorded(const char *run);

#endif
