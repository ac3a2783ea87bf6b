/*
 * run_modes.h - one small run on one replica or on several, and comparisons of such runs.
 */
#ifndef TESTS_RUN_MODES_H
#define TESTS_RUN_MODES_H

#include "base/file/file.h"
#include "base/file/json.h"

#include "support/run/run_pons.h"

#include <math.h>

extern const char modes_ini[];

void make_experiment(void);

/* The values of a key in metrics.jsonl, line by line; returns their number. */
int read_metrics(const char *run, const char *key, double *out, int room);

void same_metric(const char *a, const char *b, const char *key, double tolerance);

/* The file has equal bytes in the last checkpoints of both runs. */
bool same_file(const char *a, const char *b, const char *file);

void same_run(const char *a, const char *b);

#endif
