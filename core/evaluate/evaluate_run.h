/*
 * evaluate_run.h - a run's validation cases, predicted and evaluated on the grid of their files.
 */
#ifndef CORE_EVALUATE_EVALUATE_RUN_H
#define CORE_EVALUATE_EVALUATE_RUN_H

#include "base/log.h"
#include "evaluate/evaluate.h"
#include "infer/predict.h"

/* Adds classes and cases to an empty evaluation. source->run: a run folder. */
pons_status evaluate_run(evaluation *e, const predict_source *source, logger *l, pons_error *err);

#endif
