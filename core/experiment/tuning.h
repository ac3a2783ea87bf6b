/*
 * tuning.h - [device] autotune: what a device has chosen by timing its kernels, one table for all
 * replicas of a run. The first replica of rank 0 times; all others take what it has chosen, and so
 * do the run when it goes on, and its predictions.
 */
#ifndef CORE_EXPERIMENT_TUNING_H
#define CORE_EXPERIMENT_TUNING_H

#include "experiment/experiment.h"

#define TUNING_FILE "autotune.json" /* in the run's folder                                        */
#define TUNING_FORMAT "pons autotune 1"

typedef struct tuning tuning;

/*
 * A table without choices, of which the experiment's devices, all open, know from now on. NULL:
 * kernels are not timed, and reading, writing and adding do nothing; where a training asks for it
 * by autotune = yes a line says why not.
 */
pons_status tuning_open(const experiment *e, tuning **out, pons_error *err);
/* After the devices are closed. */
void tuning_close(tuning *t);

/*
 * In rank 0: the choices of the run in a folder. NULL, or no file there: none. What was chosen on
 * another card or with another library is left aside, and a line says so; PONS_DATA where the file
 * is damaged.
 */
pons_status tuning_read(tuning *t, const char *folder, pons_error *err);
/* Of the run that is trained, which holds its folder. */
pons_status tuning_write(const tuning *t, const char *folder, pons_error *err);
/*
 * After a prediction's tuning_share, in rank 0: what was timed here beside what the run has, but
 * for kernels that could not be. It changes none of the run's choices; where nothing can be added a
 * line says why.
 */
void tuning_add(tuning *t, const char *folder);

/* While no thread prepares: kernels of which there is no choice are timed until tuning_share. */
void tuning_begin(tuning *t);
/* All processes have rank 0's choices afterwards; a line says how many were timed. */
pons_status tuning_share(tuning *t, pons_error *err);

#endif
