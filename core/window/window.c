/*
 * window.c - positions of windows, and weights of their voxels.
 */
#include "window/window.h"

#include <math.h>
#include <stdlib.h>

#include "base/integer.h"

/* nnU-Net's number of windows: the smallest whose steps are not longer than asked for. */
static void space_evenly(window_axis *a, int extent, double overlap)
{
    double span = (double)(a->padded - extent);

    a->count = (int)ceil(span / (extent * (1 - overlap))) + 1;
    a->interval = a->count > 1 ? (int64_t)ceil(span / (a->count - 1)) : extent;
    a->even = true;
}

window_axis window_axis_make(const window_settings *s, int64_t size, int axis)
{
    window_axis a = { .size = size, .padded = size };
    int extent = s->extent[axis];

    if (size < extent) {
        a.padded = extent;
        a.low = (extent - size) / 2;
    }
    if (s->blend == WINDOW_NNUNET) {
        space_evenly(&a, extent, s->overlap[axis]);
        return a;
    }
    a.interval = (int64_t)((double)extent * (1 - s->overlap[axis]));
    if (a.interval < 1)
        a.interval = 1;
    if (a.padded == extent)
        a.interval = extent;
    while (a.interval * a.count + extent < a.padded)
        a.count++;
    a.count++;
    return a;
}

int64_t window_axis_start(const window_axis *a, int extent, int index)
{
    int64_t last = a->padded - extent;

    if (a->even)
        return a->count > 1 ? (int64_t)rint((double)last / (a->count - 1) * index) : 0;
    return min_i64(a->interval * index, last);
}

/* The gaussian of voxel 'at' of an axis of 'extent' voxels; 0 beyond four deviations. */
static double axis_gaussian(int at, int extent, double sigma_scale)
{
    double sigma = sigma_scale * extent;
    int x = at - extent / 2;

    return abs(x) > (int)(4 * sigma + 0.5) ? 0 : exp(-x * x / (2 * sigma * sigma));
}

/*
 * nnU-Net's map: 10 at its centre, and in place of zeros the smallest other weight. It is not
 * rounded to float16, whose smallest number is larger than most weights of a corner.
 */
static void nnunet_importance(const window_settings *s, float *out)
{
    const int *e = s->extent;
    float smallest = INFINITY, *x = out;
    int64_t count = (int64_t)e[0] * e[1] * e[2];

    for (int i = 0; i < e[0]; i++)
        for (int j = 0; j < e[1]; j++)
            for (int k = 0; k < e[2]; k++, x++) {
                *x = (float)(10 * axis_gaussian(i, e[0], s->sigma_scale)
                             * axis_gaussian(j, e[1], s->sigma_scale)
                             * axis_gaussian(k, e[2], s->sigma_scale));
                smallest = *x > 0 ? fminf(*x, smallest) : smallest;
            }
    for (int64_t n = 0; n < count; n++)
        out[n] = fmaxf(out[n], smallest);
}

void window_importance(const window_settings *s, float *out)
{
    int64_t count = (int64_t)s->extent[0] * s->extent[1] * s->extent[2];
    double smallest = INFINITY;

    if (s->blend == WINDOW_NNUNET) {
        nnunet_importance(s, out);
        return;
    }
    if (s->blend == WINDOW_CONSTANT) {
        for (int64_t i = 0; i < count; i++)
            out[i] = 1;
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t at[3] = { i / s->extent[2] / s->extent[1], i / s->extent[2] % s->extent[1],
                          i % s->extent[2] };
        double exponent = 0;
        for (int a = 0; a < 3; a++) {
            double x = (double)at[a] - (s->extent[a] - 1) / 2.0;
            double sigma = s->sigma_scale * s->extent[a];
            exponent += x * x / (2 * sigma * sigma);
        }
        double weight = exp(-exponent);
        smallest = fmin(smallest, weight);
        out[i] = (float)weight;
    }
    float floor = (float)fmax(smallest, 1e-3);
    for (int64_t i = 0; i < count; i++)
        out[i] = out[i] < floor ? floor : out[i];
}
