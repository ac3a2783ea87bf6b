/*
 * bench_model.h - the sums over replicas of a measured step: the share hidden behind computation,
 * and the predicted step on more devices.
 */
#ifndef CORE_CLI_BENCH_BENCH_MODEL_H
#define CORE_CLI_BENCH_BENCH_MODEL_H

#include "bench/measure.h"
#include "bench/scaling_model.h"

/* Print the member "reduction" of an object, and "model" if 'n' is not NULL. */
pons_status bench_model_json(const experiment *e, const measured *m, const scaling_model_network *n,
                             pons_error *err);
pons_status bench_model_table(const experiment *e, const measured *m,
                              const scaling_model_network *n, pons_error *err);

#endif
