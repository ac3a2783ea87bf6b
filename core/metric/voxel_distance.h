/*
 * voxel_distance.h - exact Euclidean distances between two sets of voxels, in millimetres.
 */
#ifndef CORE_METRIC_VOXEL_DISTANCE_H
#define CORE_METRIC_VOXEL_DISTANCE_H

#include <pons/plugin.h>

/* A box of voxels [extent[0]][extent[1]][extent[2]], each a byte of bits. */
typedef struct voxel_box {
    int64_t extent[3];
    double spacing[3];      /* millimetres                                                        */
    const uint8_t *bits;
} voxel_box;

/* The number of voxels that have a bit of 'mask'. */
int64_t voxel_box_count(const voxel_box *box, uint8_t mask);

/*
 * Write the distance from the centre of each voxel with a bit of 'from' to the nearest centre of a
 * voxel with a bit of 'to', which the box must contain. 'out' (voxel_box_count numbers) is in the
 * order of the voxels, and does not depend on the number of threads.
 */
pons_status voxel_distance_compute(const voxel_box *box, uint8_t from, uint8_t to, double *out,
                                   pons_error *err);

#endif
