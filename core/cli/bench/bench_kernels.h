/*
 * bench_kernels.h - the kernels of a measurement as JSON and as tables, beside the limits of the
 * device and beside an earlier measurement.
 */
#ifndef CORE_CLI_BENCH_BENCH_KERNELS_H
#define CORE_CLI_BENCH_BENCH_KERNELS_H

#include "base/file/json.h"
#include "bench/measure.h"

/*
 * 'before': the object of an earlier 'pons bench --json' whose kernels are timed, or NULL. 'queue':
 * kernels run on a device that this process only tells to.
 */
void bench_kernels_json(const measured *m, bool queue, const json_value *before);
void bench_kernels_table(const measured *m, const json_value *before);
/*
 * Warn if the device's limits changed during the measurement, and if the file 'baseline' is of
 * another network, patch or batch.
 */
void bench_kernels_warn(const measured *m, const char *baseline, const json_value *before,
                        logger *l);
/* Whether each kernel that 'before' lists, if it lists any, has its seconds. */
bool bench_kernels_timed(const json_value *before);
/* Number 'key' of 'object' in 'before'; NaN: there is none. */
double bench_before(const json_value *before, const char *object, const char *key);

#endif
