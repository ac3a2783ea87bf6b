/*
 * bench_model.h - the sums over replicas of a measured step: how much of them was hidden behind
 * computing, and how the step would fare on more devices.
 */
#ifndef CORE_CLI_BENCH_BENCH_MODEL_H
#define CORE_CLI_BENCH_BENCH_MODEL_H

#include "bench/measure.h"
#include "bench/scaling_model.h"

/* The members "reduction" and, where 'n' is not NULL, "model" of an object being printed. */
pons_status bench_model_json(const experiment *e, const measured *m, const scaling_network *n,
                             pons_error *err);
pons_status bench_model_table(const experiment *e, const measured *m, const scaling_network *n,
                              pons_error *err);

#endif
