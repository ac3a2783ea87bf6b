/*
 * measure_data.h - the speed of the data path alone, without model, device and run folder.
 */
#ifndef CORE_BENCH_MEASURE_DATA_H
#define CORE_BENCH_MEASURE_DATA_H

#include "base/log.h"
#include "config/config.h"

#include <stdint.h>

typedef struct measured_data {
    int rounds;                  /* rounds of all values below; seconds are medians               */
    double differ;               /* largest relative difference of a median from its minimum      */
    int cases;                   /* measured cases: the first training cases                      */
    int64_t voxels;              /* voxels of their images, on the files' grids                   */
    double read;                 /* seconds in one thread to read image and label of these cases  */
    double preprocess;           /* the same with [preprocess]                                    */
    double read_threads, preprocess_threads; /* the same, each case with 'fill_threads'           */
    double fill;                 /* seconds to fill the cache with 'fill_threads'                 */
    int fill_threads;
    int fill_rounds;             /* 1: files of a disk cache are made once                        */
    int64_t cache_size;          /* bytes of the cache                                            */
    int64_t patches;             /* patches of a measurement in a round                           */
    double patch_alone;          /* seconds for these patches in the consumer's thread            */
    double patch_processor;      /* seconds of a processor for the same                           */
    double patch_threads;        /* seconds for these patches with 'threads' loader threads       */
    int threads;
} measured_data;

/*
 * Measure with [data], [preprocess], [patch], [augment] and [train] of 'c': 'batches'
 * micro-batches after 'warm_up' ones, in each round. Files are read once before, so no disk is
 * measured.
 */
pons_status measure_data(config *c, int warm_up, int batches, logger *l, measured_data *out,
                         pons_error *err);

#endif
