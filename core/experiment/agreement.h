/*
 * agreement.h - compare what all processes of a run must have in common before its first step.
 *
 * All processes call each function together. A difference is PONS_CONFIG in all of them, with its
 * name and both values, unless stated otherwise.
 */
#ifndef CORE_EXPERIMENT_AGREEMENT_H
#define CORE_EXPERIMENT_AGREEMENT_H

#include "data/cache/cache.h"
#include "cluster/group/group.h"
#include "experiment/experiment.h"

/*
 * Compare options (except those that may differ), plugins, cases and threads; with deterministic =
 * yes also libraries and processor features.
 */
pons_status agreement_on_experiment(group *g, const experiment *e, pons_error *err);
/* Compare a list of cases that is not from [data], in order. */
pons_status agreement_on_names(group *g, int count, const char *const *name, pons_error *err);
/*
 * Compare content hashes of all cases (case_hash.h; zeros are unknown). PONS_DATA names the first
 * case that differs from rank 0's, and the rank. All ranks pass the same number of cases.
 */
pons_status agreement_on_contents(group *g, int count, const char *const *name,
                                  const hash128 *content, pons_error *err);
/* The same of the cases that 'cases' was opened with. */
pons_status agreement_on_cases(group *g, const dataset *d, const cache *cases, int count,
                               const int *rank, pons_error *err);
/* Compare tensors by name and shape, and op plugins. */
pons_status agreement_on_network(group *g, const experiment *e, const storage *s, pons_error *err);
/* Compare the bytes of all tensors. */
pons_status agreement_on_weights(group *g, const storage *s, pons_error *err);

#endif
