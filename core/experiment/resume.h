/*
 * resume.h - check which options change between two starts of one run (R31).
 */
#ifndef CORE_EXPERIMENT_RESUME_H
#define CORE_EXPERIMENT_RESUME_H

#include "experiment/experiment.h"
#include "checkpoint/saved_state.h"

/*
 * PONS_CONFIG if an option that must not change differs, or the training and validation cases. The
 * message has the key, its place in the file and both values, or the case. The caller adds a hint.
 * A run that is not the checkpoint's 'own' may have another rate, schedule, loss and augmentation:
 * the shapes of tensors and the state of the optimizer do not depend on them.
 */
pons_status resume_check(const saved_state *s, const experiment *e, bool own, pons_error *err);
/*
 * Compare the options of a prediction, without sections named by --set. PONS_DATA if the run's
 * file 'path' has a value with which 'checkpoint' was not made.
 */
pons_status resume_check_prediction(const char *checkpoint, const char *path, const experiment *e,
                              int set_count, const char *const *set, pons_error *err);
/*
 * Called after the cases were read: warn of cases whose files have changed since the checkpoint,
 * and of given values that a resumed run ignores, and list those that differ. The configuration
 * keeps the run's values.
 */
void resume_restore(const saved_state *s, const experiment *e);

#endif
