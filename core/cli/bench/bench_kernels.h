/*
 * bench_kernels.h - the kernels of a measurement as JSON and as tables, compared with the device's
 * peak and with a baseline.
 */
#ifndef CORE_CLI_BENCH_BENCH_KERNELS_H
#define CORE_CLI_BENCH_BENCH_KERNELS_H

#include "base/file/json.h"
#include "bench/measure.h"

/*
 * Print the kernels as JSON. 'before' is the baseline, the object of 'pons bench --json' with timed
 * kernels, or NULL. 'queue': the device runs kernels from a stream of its own.
 */
void bench_kernels_json(const measured *m, bool queue, const json_t *before);
void bench_kernels_table(const measured *m, const json_t *before);
/*
 * Warn if the device's peak changed during the measurement, or if the file 'baseline' has another
 * network, patch or batch.
 */
void bench_kernels_warn(const measured *m, const char *baseline, const json_t *before,
                        logger *l);
/* Whether all kernels that 'before' lists have their seconds. */
bool bench_kernels_timed(const json_t *before);
/* The number 'key' of 'object' in 'before', or NaN. */
double bench_before(const json_t *before, const char *object, const char *key);

#endif
