/*
 * tuning.h - [device] autotune: the kernels that a device has chosen by timing, for all replicas.
 *
 * The first replica of rank 0 times kernels. Its choices are used by all other replicas, by the
 * resumed run and by its predictions.
 */
#ifndef CORE_EXPERIMENT_TUNING_H
#define CORE_EXPERIMENT_TUNING_H

#include "experiment/experiment.h"

#define TUNING_FILE "autotune.json" /* in the run's folder                                        */
#define TUNING_FORMAT "pons autotune 1"

typedef struct tuning tuning;

/*
 * Make an empty table and give it to the experiment's devices, which are open. NULL: kernels are
 * not timed, and tuning_read, tuning_write and tuning_add do nothing. If a training has autotune =
 * yes, a warning says why.
 */
pons_status tuning_open(const experiment *e, tuning **out, pons_error *err);
/* Called after the devices are closed. */
void tuning_close(tuning *t);

/*
 * Rank 0: read the choices of the run in 'folder' (may be NULL); a missing file has none. Choices
 * of another GPU or library are ignored with a warning. PONS_DATA: the file is damaged.
 */
pons_status tuning_read(tuning *t, const char *folder, pons_error *err);
/* Write the choices of a training, which holds the lock of its folder. */
pons_status tuning_write(const tuning *t, const char *folder, pons_error *err);
/*
 * Rank 0, after the tuning_share of a prediction: add its new choices to the run's file. Existing
 * choices stay. A warning says why if they cannot be added.
 */
void tuning_add(tuning *t, const char *folder);

/*
 * Until tuning_share, kernels without a choice are timed. No thread may prepare programs
 * meanwhile.
 */
void tuning_begin(tuning *t);
/* Give rank 0's choices to all processes; a line says how many kernels were timed. */
pons_status tuning_share(tuning *t, pons_error *err);

#endif
