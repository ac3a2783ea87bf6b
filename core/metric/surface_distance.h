/*
 * surface_distance.h - distances between the boundaries of two masks, in millimetres.
 *
 * The boundary of a mask is its voxels that have a face neighbour outside it; outside the image is
 * outside the mask. Distances are between centres of voxels (as MONAI's hausdorff_distance,
 * surface_distance and surface_dice).
 */
#ifndef CORE_METRIC_SURFACE_DISTANCE_H
#define CORE_METRIC_SURFACE_DISTANCE_H

#include "metric/voxel_distance.h"

enum { MASK_PREDICTION = 1, MASK_LABEL = 2 }; /* bits of a voxel                                  */

/*
 * With a = distances of P's boundary to G's, b = of G's to P's:
 *
 *     hd    max(max a, max b)
 *     hd95  max(95th percentile of a, of b), with linear interpolation between order statistics
 *     asd   (sum a + sum b) / (|a| + |b|)
 *     nsd   share of a and b, pooled, that are at most the tolerance (Nikolov et al. 2021)
 *
 * If one mask is empty, the first three are NaN and nsd is 0. If both are, nsd is NaN too.
 */
typedef struct surface_values {
    double hd, hd95, asd, nsd;
} surface_values;

/*
 * 'masks' is a box that contains both masks. A distance that exceeds 'tolerance' by less than a
 * millionth is within it, because files store spacings in float32.
 */
pons_status surface_distance_compute(const voxel_box *masks, double tolerance,
                                     surface_values *out, pons_error *err);

#endif
