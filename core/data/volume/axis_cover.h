/*
 * axis_cover.h - the voxels of a new grid that belong to a part of an old one.
 */
#ifndef CORE_DATA_VOLUME_AXIS_COVER_H
#define CORE_DATA_VOLUME_AXIS_COVER_H

#include <stdint.h>

/*
 * A position is outside a part of an axis where it lies farther than this from all its voxels: half
 * a voxel, and a tolerance for grids whose extent was rounded.
 */
#define AXIS_OUTSIDE_DISTANCE (0.5 + 1e-3)

/*
 * The part of an axis of a new grid that the inside box of the old one covers. 'edge' and 'centre'
 * are positions in the new grid of the box's two edges, and of its first and last voxel, in rising
 * order. The part has the voxels whose centres lie in the box, and those that a voxel of the box is
 * nearest to: axis_position_at calls none of the box outside.
 */
void axis_cover(const double edge[2], const double centre[2], int64_t extent, int64_t *start,
                int64_t *count);

#endif
