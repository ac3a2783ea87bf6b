/*
 * tuning.h - [device] autotune: what a device has chosen by timing its kernels, one table for all
 * replicas of a run. The first replica of rank 0 times; all others take what it has chosen, and so
 * does the run when it goes on.
 */
#ifndef CORE_TRAIN_TUNING_H
#define CORE_TRAIN_TUNING_H

#include "train/experiment.h"

#define TUNING_FILE "autotune.json" /* in the run's folder                                        */
#define TUNING_FORMAT "pons autotune 1"

typedef struct tuning tuning;

/*
 * A table without choices, of which the experiment's devices, all open, know from now on. NULL:
 * kernels are not timed; where autotune = yes asks for it a line says why not.
 */
pons_status tuning_open(const experiment *e, tuning **out, pons_error *err);
/* After the devices are closed. */
void tuning_close(tuning *t);

/*
 * The choices of an earlier part of the run. No file: none. What was chosen on another card or with
 * another library is left aside, and a line says so; PONS_DATA where the file is damaged.
 */
pons_status tuning_read(tuning *t, const char *path, pons_error *err);
pons_status tuning_write(const tuning *t, const char *path, pons_error *err);

/* While no thread prepares: kernels of which there is no choice are timed until tuning_share. */
void tuning_begin(tuning *t);
/* All processes have rank 0's choices afterwards; a line says how many were timed. */
pons_status tuning_share(tuning *t, pons_error *err);

#endif
