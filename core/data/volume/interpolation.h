/*
 * interpolation.h - where points of one grid lie between the voxels of another, axis by axis, and
 * the value there.
 */
#ifndef CORE_DATA_VOLUME_INTERPOLATION_H
#define CORE_DATA_VOLUME_INTERPOLATION_H

#include <stdbool.h>
#include <stdint.h>

/* A position along one axis: between 'low' and 'low + 1' at 'weight' (0: 'low + 1' may not exist),
 * or at 'near'. */
typedef struct place {
    int64_t low, near;
    double weight;
    bool outside;             /* further than half a voxel from the axis's voxels                 */
} place;

/* Among voxels begin .. begin + count - 1 of the axis. */
place place_at(double position, int64_t begin, int64_t count);
/* Of start + step n, n = 0 .. count - 1; NULL: out of memory. The caller frees it. */
place *places_make(double step, double start, int64_t count, int64_t begin, int64_t source_count);
/* Of 'm' applied to (i, j, k). */
void places_of(const double m[3][4], int64_t i, int64_t j, int64_t k, const int64_t begin[3],
               const int64_t count[3], place out[3]);

/* The voxels between which a point lies, as offsets from the one at 'low' of all axes. */
typedef struct place_corners {
    bool exact;               /* it is that voxel, and nothing else is set                        */
    int64_t offset[8];
    float weight[8];
} place_corners;

/* step: values from voxel to voxel along each axis. */
void place_corners_make(const place at[3], const int64_t step[3], place_corners *out);
/* Linear between voxels: out[c] of channels 0 .. channels - 1 behind 'corner'. */
void place_sample(const place_corners *p, const float *corner, int channels, float *out);

#endif
