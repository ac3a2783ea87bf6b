/*
 * patch_batch.h - make the patches of one case in a micro-batch: a job of the loader.
 */
#ifndef CORE_DATA_LOADER_PATCH_BATCH_H
#define CORE_DATA_LOADER_PATCH_BATCH_H

#include "data/transform/augment.h"
#include "data/cache/cache.h"
#include "data/loader/loader.h"
#include "data/loader/batch_layout.h"

typedef struct patch_batch {
    cache *cases;
    loader_settings settings;
    augment augment;
    batch_layout parts;
    int channels, label_channels;
} patch_batch;

/* One case of a micro-batch: the patches become samples 'first' and following of each part. */
typedef struct patch_job {
    int64_t epoch;
    int rank;                   /* of the case                                                    */
    int micro_batch;            /* in the step                                                    */
    int64_t first;
} patch_job;

/* Scratch memory of a worker thread. */
typedef struct patch_scratch {
    void *records;
    float *numbers;             /* parameters of a step, for a device */
    float *voxels;              /* scratch memory of steps, displacements; NULL if none needs it  */
} patch_scratch;

/* Bytes that the steps of [augment] need beside a patch (NULL: no steps). */
size_t patch_scratch_size(const pipeline *steps, const int extent[3]);
pons_status patch_scratch_init(const patch_batch *m, patch_scratch *b, pons_error *err);
void patch_scratch_clear(patch_scratch *b);

/* Make samples 0 .. per_case - 1 of the case. */
pons_status patch_batch_make(const patch_batch *m, patch_scratch *b, const patch_job *job,
                             const loader_part *part, pons_error *err);

#endif
