/*
 * patch_make.h - the patches of one case in a micro-batch: the unit of work of a loader.
 */
#ifndef CORE_DATA_PATCH_MAKE_H
#define CORE_DATA_PATCH_MAKE_H

#include "data/augment.h"
#include "data/cache_hold.h"

typedef struct patch_maker {
    cache *held;
    loader_settings settings;
    augment augment;
    int64_t voxels;             /* of a patch */
    int channels, label_channels;
} patch_maker;

/* What one thread writes while it works. */
typedef struct patch_bench {
    void *records;
} patch_bench;

pons_status patch_bench_init(const patch_maker *m, patch_bench *b, pons_error *err);
void patch_bench_clear(patch_bench *b);

/* Samples 0 .. per_case - 1 of case 'rank' in 'epoch', one after the other. */
pons_status patch_make(const patch_maker *m, patch_bench *b, int64_t epoch, int rank, float *image,
                       uint8_t *label, pons_error *err);

#endif
