/*
 * bench_data.h - pons bench --data: the data path alone.
 */
#ifndef CORE_CLI_BENCH_BENCH_DATA_H
#define CORE_CLI_BENCH_BENCH_DATA_H

#include "base/log.h"
#include "config/config.h"

/* Measure and print. Each round has 'warm_up' micro-batches, then 'batches' timed ones. */
pons_status bench_data(config *c, int warm_up, int batches, bool json, logger *l, pons_error *err);

#endif
