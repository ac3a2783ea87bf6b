/*
 * interpolation.h - positions of points of one grid between the voxels of another, and values
 * there.
 */
#ifndef CORE_DATA_VOLUME_INTERPOLATION_H
#define CORE_DATA_VOLUME_INTERPOLATION_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A position along one axis, clamped to the axis: between voxels 'low' and 'low + 1' with weight
 * 'weight' for the latter, which may not exist if the weight is 0. 'near' is the nearest voxel.
 */
typedef struct axis_position {
    int64_t low, near;
    double weight;
    bool outside;             /* more than half a voxel beyond the axis's voxels                  */
} axis_position;

/* Positions start + step n, n = 0 .. count - 1; NULL: out of memory. The caller frees them. */
axis_position *axis_positions_make(double step, double start, int64_t count, int64_t begin,
                                   int64_t source_count);
/* Positions along all axes of m applied to (i, j, k). */
void axis_positions_of(const double m[3][4], int64_t i, int64_t j, int64_t k,
                       const int64_t begin[3], const int64_t count[3], axis_position out[3]);

/* The 8 voxels around a point, as offsets from the one at 'low' of all axes. */
typedef struct interpolation_corners {
    bool exact;               /* the point is that voxel; offset and weight are not set           */
    int64_t offset[8];
    float weight[8];
} interpolation_corners;

/* step: elements from voxel to voxel along each axis. */
void interpolation_corners_make(const axis_position at[3], const int64_t step[3],
                                interpolation_corners *out);
/* Trilinear interpolation: out[c] of channels 0 .. channels - 1; 'corner' is the voxel at 'low'. */
void interpolation_sample(const interpolation_corners *p, const float *corner, int channels,
                          float *out);

#endif
