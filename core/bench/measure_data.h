/*
 * measure_data.h - the speed of the data path alone: no model, no device, no run folder.
 */
#ifndef CORE_BENCH_MEASURE_DATA_H
#define CORE_BENCH_MEASURE_DATA_H

#include "base/log.h"
#include "config/config.h"

#include <stdint.h>

typedef struct measured_data {
    int rounds;                  /* of all below; seconds are their medians                       */
    double differ;               /* by how much of the least these are longer, at most            */
    int cases;                   /* training cases that were measured, the first ones             */
    int64_t voxels;              /* of their images, on the files' grids                          */
    double read;                 /* seconds in one thread: image and label of all these cases     */
    double preprocess;           /* the same with the deterministic transforms                    */
    double read_threads, preprocess_threads; /* the same, each case by 'fill_threads'             */
    double fill;                 /* seconds until the cache holds them, by                        */
    int fill_threads;
    int fill_rounds;             /* 1 where it makes files that are found afterwards              */
    int64_t cache_size;          /* bytes held                                                    */
    int64_t patches;             /* of each of the two measurements of patches, in a round        */
    double patch_alone;          /* seconds for them where the consumer makes them itself         */
    double patch_threads;        /* seconds for them by 'threads' loader threads                  */
    int threads;
} measured_data;

/*
 * Reads [data], [preprocess], [patch], [augment] and [train] of 'c'. 'batches' micro-batches after
 * 'warm_up' ones in each round. Files are read once before they are timed, so that no disk is
 * measured.
 */
pons_status measure_data(config *c, int warm_up, int batches, logger *l, measured_data *out,
                         pons_error *err);

#endif
