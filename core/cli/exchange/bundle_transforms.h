/*
 * bundle_transforms.h - the steps of [preprocess] as transforms of MONAI.
 */
#ifndef CORE_CLI_EXCHANGE_BUNDLE_TRANSFORMS_H
#define CORE_CLI_EXCHANGE_BUNDLE_TRANSFORMS_H

#include "base/file/json.h"
#include "experiment/experiment.h"

/*
 * Append the transforms of the steps of a prediction. PONS_CONFIG names the step or option that
 * MONAI does not have. '*moves' becomes true if a step changes the grid.
 */
pons_status bundle_transforms_add(const experiment *e, json_t *list, bool *moves, pons_error *err);

#endif
