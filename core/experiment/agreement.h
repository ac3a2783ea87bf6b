/*
 * agreement.h - what all processes of a run must have in common before its first step. Each of
 * these is called by all of them; PONS_CONFIG on all where they differ, with name and both sides,
 * unless said otherwise.
 */
#ifndef CORE_EXPERIMENT_AGREEMENT_H
#define CORE_EXPERIMENT_AGREEMENT_H

#include "data/cache/cache.h"
#include "cluster/group/group.h"
#include "experiment/experiment.h"

/* Options but those that each may choose, plugins, cases, threads; with deterministic = yes also
   libraries and features of the processor. */
pons_status agreement_on_experiment(group *g, const experiment *e, pons_error *err);
/* A list of cases that did not come with the experiment, in order. */
pons_status agreement_on_names(group *g, int count, const char *const *name, pons_error *err);
/*
 * Compare the content hashes of all cases (case_source; zeros are unknown) between ranks. PONS_DATA
 * names the first case that differs from rank 0's, and the rank. All ranks pass equally many cases.
 */
pons_status agreement_on_contents(group *g, int count, const char *const *name,
                                  const fingerprint *content, pons_error *err);
/* The same of the cases that 'held' was opened with. */
pons_status agreement_on_cases(group *g, const dataset *d, const cache *held, int count,
                               const int *rank, pons_error *err);
/* Tensors by name and shape, and op plugins. */
pons_status agreement_on_network(group *g, const experiment *e, const storage *s, pons_error *err);
/* The bytes of all tensors. */
pons_status agreement_on_weights(group *g, const storage *s, pons_error *err);

#endif
