/*
 * activation.h - [loss] activation of logits, and the decision (R22, R28).
 */
#ifndef CORE_INFER_ACTIVATION_H
#define CORE_INFER_ACTIVATION_H

#include "experiment/experiment.h"

/* Activate x [voxels][classes] in place. SOFTMAX: values sum to 1 over classes; NONE: unchanged. */
void activation_apply(pons_activation activation, float *x, int64_t voxels, int classes);

/* Decided values per voxel: 1 for several classes, else one for each region. */
int activation_decision_count(const experiment *e);
/*
 * Decide from logits, which may be overwritten. Several classes: [voxels], the index of the
 * largest, the first of equals. Regions or a single class: [voxels][classes], 1 if the activated
 * value is above 0.5.
 */
void activation_decide_logits(const experiment *e, float *logits, int64_t voxels, uint8_t *out);
/* The same from activated values. */
void activation_decide(const experiment *e, const float *x, int64_t voxels, uint8_t *out);

#endif
