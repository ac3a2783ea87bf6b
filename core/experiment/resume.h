/*
 * resume.h - what of an experiment may change between two starts of one run (R31).
 */
#ifndef CORE_EXPERIMENT_RESUME_H
#define CORE_EXPERIMENT_RESUME_H

#include "experiment/experiment.h"
#include "checkpoint/saved_state.h"

/*
 * An option that may not change while a run goes on, or the cases of training and validation
 * differ: PONS_CONFIG with key and both values, or the case. The caller knows what can be done and
 * adds the hint.
 */
pons_status resume_compare(const saved_state *s, const experiment *e, pons_error *err);
/*
 * The same of a prediction's options, but for sections with a --set: PONS_DATA where the run's file
 * 'path' has a value with which 'checkpoint' was not made.
 */
pons_status resume_check_prediction(const char *checkpoint, const char *path, const experiment *e,
                              int set_count, const char *const *set, pons_error *err);
/*
 * Called after the cases were read. A warning names each case whose files have changed since the
 * checkpoint, and each given value that the run cannot take; the configuration keeps the run's own.
 */
void resume_keep(const saved_state *s, const experiment *e);

#endif
