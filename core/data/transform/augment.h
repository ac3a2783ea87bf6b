/*
 * augment.h - the random chain of [augment] on one sample: plan, then apply to the patch.
 */
#ifndef CORE_DATA_TRANSFORM_AUGMENT_H
#define CORE_DATA_TRANSFORM_AUGMENT_H

#include "data/transform/pipeline.h"

typedef struct augment {
    const volume_chain *chain; /* NULL: nothing happens                                           */
    uint64_t *stream;          /* [step], hash of "augment.NAME"                                  */
    size_t *record;            /* [step + 1], where its record lies                               */
} augment;

pons_status augment_init(augment *a, const volume_chain *chain, pons_error *err);
void augment_clear(augment *a);
size_t augment_record_size(const augment *a);

/* Draw every step's numbers; 'draws' names the sample, its stream is set here. */
pons_status augment_plan(const augment *a, const pons_rng *draws, pons_sample *sample,
                         void *records, pons_error *err);
int augment_count(const augment *a);
/* Leading steps that may change a part of a patch at a time. */
int augment_pointwise(const augment *a);
/* Steps begin .. end - 1. */
pons_status augment_apply(const augment *a, int begin, int end, const void *records,
                          pons_patch *patch, pons_error *err);

/* What a device is told of a step that has a form for devices; 'out' has its size and channels. */
void augment_numbers(const augment *a, int step, const void *records, pons_sample_params *out);

#endif
