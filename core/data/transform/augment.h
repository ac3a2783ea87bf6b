/*
 * augment.h - the random pipeline of [augment] on one sample: plan, then apply to the patch.
 */
#ifndef CORE_DATA_TRANSFORM_AUGMENT_H
#define CORE_DATA_TRANSFORM_AUGMENT_H

#include "data/transform/pipeline.h"

typedef struct augment {
    const pipeline *steps;     /* NULL: no steps                                                  */
    uint64_t *stream;          /* [step] hash of "augment.NAME", the stream of R5                 */
    size_t *record;            /* [step + 1] offset of the step's record in 'records'             */
} augment;

pons_status augment_init(augment *a, const pipeline *steps, pons_error *err);
void augment_clear(augment *a);
size_t augment_record_size(const augment *a);

/* Draw the random numbers of every step. 'draws' identifies the sample; its stream is set here. */
pons_status augment_plan(const augment *a, const pons_rng *draws, pons_sample *sample,
                         void *records, pons_error *err);
/* Whether a step may displace voxels. */
bool augment_displaces(const augment *a);
/* Add the displacements of all steps. */
pons_status augment_displace(const augment *a, const void *records, pons_displacement *out,
                             pons_error *err);
int augment_count(const augment *a);
/* The number of leading steps that may be applied to a part of a patch. */
int augment_pointwise(const augment *a);
/* Apply steps begin .. end - 1. Steps that are not pointwise need the patch's scratch memory. */
pons_status augment_apply(const augment *a, int begin, int end, const void *records,
                          pons_patch *patch, pons_error *err);

/* The parameters of a step with a device form; the caller sets size and channels of 'out'. */
void augment_sample_params(const augment *a, int step, const void *records,
                           pons_sample_params *out);

#endif
