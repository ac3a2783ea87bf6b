/*
 * lesions.h - detection of lesions: connected components of a class in label and prediction.
 *
 * Voxels are connected if they share a face, an edge or a corner. A lesion is a component of the
 * label. It is found if one of its voxels is predicted, and missed otherwise. A component of the
 * prediction without a voxel of the label is a false lesion.
 */
#ifndef CORE_METRIC_LESIONS_H
#define CORE_METRIC_LESIONS_H

#include <pons/plugin.h>

typedef struct lesion_values {
    double found, missed, false_ones;
    double f1;                /* 2 found / (2 found + missed + false); NaN: no components         */
} lesion_values;

/*
 * 'masks' is [extent[0]][extent[1]][extent[2]] with the bits of surface_distance.h, and contains
 * both masks.
 */
pons_status lesions_count(const uint8_t *masks, const int64_t extent[3], lesion_values *out,
                          pons_error *err);

#endif
