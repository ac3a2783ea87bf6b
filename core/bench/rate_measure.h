/*
 * rate_measure.h - train with rising rates and keep the losses. No run folder is touched.
 */
#ifndef CORE_BENCH_RATE_MEASURE_H
#define CORE_BENCH_RATE_MEASURE_H

#include "bench/rate_curve.h"
#include "experiment/experiment.h"

/*
 * Train a new network, or that of [train] pretrained, on the cases of the file, until the sweep
 * ends. All processes of the experiment call it together and get the same curve. '*out' is zeroed
 * by the caller.
 */
pons_status rate_measure(experiment *e, const rate_sweep *sweep, rate_curve *out,
                         pons_error *err);

#endif
