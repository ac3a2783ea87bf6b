/*
 * interpolation.c - positions between voxels, and linear interpolation of one point.
 */
#include "data/volume/interpolation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/volume/axis_cover.h"

/* A position this close to a voxel's centre is that voxel, since affines are rounded. */
static const double CENTRE_TOLERANCE = 1e-5;

/* The position among voxels begin .. begin + count - 1 of an axis. */
static axis_position axis_position_at(double position, int64_t begin, int64_t count)
{
    double nearest = rint(position), last = (double)(begin + count - 1);
    axis_position p = { .outside = count < 1 || position < (double)begin - AXIS_OUTSIDE_DISTANCE
                                   || position > last + AXIS_OUTSIDE_DISTANCE };

    if (fabs(position - nearest) < CENTRE_TOLERANCE)
        position = nearest;
    position = fmin(fmax(position, (double)begin), fmax(last, (double)begin));
    p.near = (int64_t)rint(position);
    p.low = (int64_t)floor(position);
    p.weight = position - (double)p.low;
    return p;
}

axis_position *axis_positions_make(double step, double start, int64_t count, int64_t begin,
                                   int64_t source_count)
{
    axis_position *p = malloc((size_t)count * sizeof *p);

    for (int64_t n = 0; p && n < count; n++)
        p[n] = axis_position_at(start + step * (double)n, begin, source_count);
    return p;
}

void axis_positions_of(const double m[3][4], int64_t i, int64_t j, int64_t k,
                       const int64_t begin[3], const int64_t count[3], axis_position out[3])
{
    for (int a = 0; a < 3; a++)
        out[a] = axis_position_at(m[a][0] * (double)i + m[a][1] * (double)j + m[a][2] * (double)k +
                                  m[a][3], begin[a], count[a]);
}

/* A far voxel of weight 0 may not exist; the near voxel is read instead. */
void interpolation_corners_make(const axis_position at[3], const int64_t step[3],
                                interpolation_corners *out)
{
    int64_t far[3];

    out->exact = at[0].weight == 0 && at[1].weight == 0 && at[2].weight == 0;
    if (out->exact)
        return;
    for (int a = 0; a < 3; a++)
        far[a] = at[a].weight > 0 ? step[a] : 0;
    for (int n = 0; n < 8; n++) {
        float wi = (float)(n & 4 ? at[0].weight : 1 - at[0].weight);
        float wj = (float)(n & 2 ? at[1].weight : 1 - at[1].weight);
        float wk = (float)(n & 1 ? at[2].weight : 1 - at[2].weight);

        out->weight[n] = wi * wj * wk;
        out->offset[n] = (n & 4 ? far[0] : 0) + (n & 2 ? far[1] : 0) + (n & 1 ? far[2] : 0);
    }
}

void interpolation_sample(const interpolation_corners *p, const float *corner, int channels,
                          float *out)
{
    if (p->exact) {
        memcpy(out, corner, (size_t)channels * sizeof *out);
        return;
    }
    for (int c = 0; c < channels; c++) {
        float sum = 0;

        for (int n = 0; n < 8; n++)
            sum += p->weight[n] * corner[p->offset[n] + c];
        out[c] = sum;
    }
}
