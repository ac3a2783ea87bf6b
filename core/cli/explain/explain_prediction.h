/*
 * explain_prediction.h - the network, windows and memory of a prediction, before it runs.
 */
#ifndef CORE_CLI_EXPLAIN_EXPLAIN_PREDICTION_H
#define CORE_CLI_EXPLAIN_EXPLAIN_PREDICTION_H

#include "cli/command.h"

/*
 * Print what pons predict would do with a run, a checkpoint or a folder of nnU-Net, the first
 * argument, on the image that is the second, if there is one.
 */
pons_status explain_prediction(const invocation *call, bool json, pons_error *err);

#endif
