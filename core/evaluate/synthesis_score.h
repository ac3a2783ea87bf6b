/*
 * synthesis_score.h - make a modality of a held-out case from the others and compare both.
 */
#ifndef CORE_EVALUATE_SYNTHESIS_SCORE_H
#define CORE_EVALUATE_SYNTHESIS_SCORE_H

#include "metric/metric.h"
#include "replica/replicas.h"

/*
 * Score a preprocessed case, on its grid. Its target is drawn by [experiment]
 * seed and name, so every validation of a run has the same one. score [modalities]: the others
 * have no value. The images span -1 to 1. 'stop' as of diffusion_sample.
 */
pons_status synthesis_score_case(const replicas *network, const pons_case *c,
                                 bool (*stop)(void *context), void *context, class_score *score,
                                 pons_error *err);

#endif
