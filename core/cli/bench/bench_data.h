/*
 * bench_data.h - pons bench --data: the data path alone.
 */
#ifndef CORE_CLI_BENCH_BENCH_DATA_H
#define CORE_CLI_BENCH_BENCH_DATA_H

#include "base/log.h"
#include "config/config.h"

/* Measure and print; 'batches' micro-batches after 'warm_up' ones in each round. */
pons_status bench_data(config *c, int warm_up, int batches, bool json, logger *l, pons_error *err);

#endif
