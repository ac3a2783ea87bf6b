/*
 * synthesis_score.h - make a modality of a held-out case from the others and compare both.
 */
#ifndef CORE_EVALUATE_SYNTHESIS_SCORE_H
#define CORE_EVALUATE_SYNTHESIS_SCORE_H

#include "metric/metric.h"
#include "replica/replicas.h"

typedef struct synthesis_watch {
    bool (*stop)(void *context);  /* as of diffusion_sample                                       */
    /* Called with the scored image and the modality in whose place it is; may be NULL. */
    void (*made)(void *context, int target, const class_score *score, const float *made,
                 const float *truth);
    void *context;
} synthesis_watch;

/*
 * Score a preprocessed case, on its grid. Its target is drawn by [experiment]
 * seed and name, so every validation of a run has the same one. score [modalities]: the others
 * have no value. The images span -1 to 1.
 */
pons_status synthesis_score_case(const replicas *network, const pons_case *c,
                                 const synthesis_watch *watch, class_score *score,
                                 pons_error *err);

#endif
