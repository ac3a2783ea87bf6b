/*
 * network_levels.h - the network by level, which is an extent of its tensors: network.csv of a run.
 */
#ifndef CORE_REPORT_PAGE_NETWORK_LEVELS_H
#define CORE_REPORT_PAGE_NETWORK_LEVELS_H

#include "experiment/experiment.h"

/* One resolution of the network: the convolutions and matrix products whose results have it. */
typedef struct network_level {
    int64_t extent[3];        /* D, H, W of a patch                                               */
    int products;             /* convolutions and matrix products with results of this extent     */
    int64_t channels;         /* most of a result                                                 */
    int64_t parameters;       /* of the operations with results of this extent                    */
    double bytes;             /* results of the products for a micro-batch, in the precision      */
} network_level;

typedef struct network_levels {
    int count;
    network_level *level;     /* the largest extent first                                         */
} network_levels;

/* Build the graph of the training and measure it. Everything lies in 'memory'. */
pons_status network_levels_find(const experiment *e, arena *memory, network_levels *out,
                                pons_error *err);
/* Find them and write network.csv to the folder of a run. */
pons_status network_levels_write(const experiment *e, const char *run, pons_error *err);
/* Read the table; without one, or of a damaged one, count is 0. */
void network_levels_read(arena *memory, const char *run, network_levels *out);

#endif
