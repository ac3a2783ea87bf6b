/*
 * evaluation_run.h - predict and evaluate a run's validation cases on the grid of their files.
 */
#ifndef CORE_EVALUATE_EVALUATION_RUN_H
#define CORE_EVALUATE_EVALUATION_RUN_H

#include "base/log.h"
#include "evaluate/evaluation.h"
#include "infer/predict.h"

/*
 * Add classes and cases to an empty evaluation. source->run is a run folder, or holds folds. Of a
 * folder of nnU-Net 'set' names the dataset, as data.source, whose splits say what a fold held out.
 */
pons_status evaluation_run(evaluation *e, const predict_source *source, logger *l, pons_error *err);

#endif
