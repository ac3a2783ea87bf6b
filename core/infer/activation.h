/*
 * activation.h - what follows the logits: [loss] activation, and the decision (R22, R28).
 */
#ifndef CORE_INFER_ACTIVATION_H
#define CORE_INFER_ACTIVATION_H

#include "experiment/experiment.h"

/* In place, x is [voxels][classes]. SOFTMAX: sums to 1 over classes; NONE: as it is. */
void logits_activate(pons_activation activation, float *x, int64_t voxels, int classes);

/*
 * Numbers that are decided at each voxel: 1 of labels of several classes, else one of each class.
 */
int logits_decisions(const experiment *e);
/*
 * Labels of several classes: [voxels], the largest, the first of equals. Regions or one class: 0
 * and 1 [voxels][classes], whether the activated value is above 0.5. The logits may be changed.
 */
void logits_decide(const experiment *e, float *logits, int64_t voxels, uint8_t *out);
/* The same of values that are activated already. */
void activated_decide(const experiment *e, const float *x, int64_t voxels, uint8_t *out);

#endif
