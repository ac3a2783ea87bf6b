/*
 * axis_cover.c - the voxels of a new grid that belong to a part of an old one.
 */
#include "data/volume/axis_cover.h"

#include <math.h>

void axis_cover(const double edge[2], const double centre[2], int64_t extent, int64_t *start,
                int64_t *count)
{
    double low = fmin(ceil(edge[0]), floor(centre[0] + AXIS_OUTSIDE_DISTANCE));
    double high = fmax(floor(edge[1]), ceil(centre[1] - AXIS_OUTSIDE_DISTANCE));

    /* A box between two centres has neither in it and is as near to both. */
    double first = fmax(0, fmin(low, high)), last = fmin((double)extent - 1, fmax(low, high));

    *start = last >= first ? (int64_t)first : 0;
    *count = last >= first ? (int64_t)(last - first) + 1 : 0;
}
