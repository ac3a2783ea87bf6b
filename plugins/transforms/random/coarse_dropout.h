/*
 * coarse_dropout.h - the record of coarse_dropout.
 */
#ifndef PLUGINS_TRANSFORMS_RANDOM_COARSE_DROPOUT_H
#define PLUGINS_TRANSFORMS_RANDOM_COARSE_DROPOUT_H

#include <stdint.h>

enum { DROPOUT_BOXES_MAX = 64 };

/* The voxels [start, start + extent) along i, j, k. */
typedef struct dropout_box {
    int32_t start[3], extent[3];
} dropout_box;

typedef struct dropout_record {
    int32_t count;            /* boxes; 0: nothing changes                                        */
    dropout_box box[DROPOUT_BOXES_MAX];
    uint64_t key;             /* key of the values                                                */
} dropout_record;

#endif
