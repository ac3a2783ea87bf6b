/*
 * class_weights.h - weights of the loss that make up for rare classes ([loss] class_weights).
 */
#ifndef CORE_EXPERIMENT_CLASS_WEIGHTS_H
#define CORE_EXPERIMENT_CLASS_WEIGHTS_H

#include "experiment/experiment.h"

/*
 * Resolve class_weights = auto: count the voxels of each class in the labels of at most 50 training
 * cases, on the files' grids, and give the loss the option 'weight': the inverse of each count,
 * scaled to a mean of 1. A class without voxels gets the largest. Does nothing for none.
 */
pons_status class_weights_resolve(experiment *e, pons_error *err);

#endif
