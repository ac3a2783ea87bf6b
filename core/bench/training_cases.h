/*
 * training_cases.h - the cases of a training, read for a measurement.
 */
#ifndef CORE_BENCH_TRAINING_CASES_H
#define CORE_BENCH_TRAINING_CASES_H

#include "data/cache/cache.h"
#include "replica/replicas.h"

/*
 * Read the training cases and open a loader for each replica of 'programs'. The replicas are opened
 * again if the devices have no room for the cases (device_cases_choose). cache_close frees '*out'.
 */
pons_status training_cases_open(experiment *e, unsigned programs, replicas *r, cache **out,
                                pons_error *err);

#endif
