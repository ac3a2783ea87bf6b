/*
 * patch_batch.h - the patches of one case in a micro-batch: the unit of work of a loader.
 */
#ifndef CORE_DATA_LOADER_PATCH_BATCH_H
#define CORE_DATA_LOADER_PATCH_BATCH_H

#include "data/transform/augment.h"
#include "data/cache/cache.h"
#include "data/loader/loader.h"
#include "data/loader/batch_layout.h"

typedef struct patch_maker {
    cache *held;
    loader_settings settings;
    augment augment;
    patch_parts parts;
    int channels, label_channels;
} patch_maker;

/* What one thread writes while it works. */
typedef struct patch_bench {
    void *records;
    float *numbers;             /* of a step, for a device */
} patch_bench;

pons_status patch_bench_init(const patch_maker *m, patch_bench *b, pons_error *err);
void patch_bench_clear(patch_bench *b);

/*
 * Samples 0 .. per_case - 1 of case 'rank' in 'epoch', one after the other; to each part as sample
 * 'first' and those behind it.
 */
pons_status patch_make(const patch_maker *m, patch_bench *b, int64_t epoch, int rank,
                       const loader_part *part, int64_t first, pons_error *err);

#endif
