/*
 * window.c - positions of windows, and weights of their voxels.
 */
#include "window/window.h"

#include <math.h>

#include "base/integer.h"

window_axis window_axis_make(int64_t size, int extent, double overlap)
{
    window_axis a = { .size = size, .padded = size };

    if (size < extent) {
        a.padded = extent;
        a.low = (extent - size) / 2;
    }
    a.interval = (int64_t)((double)extent * (1 - overlap));
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
    int64_t start = a->interval * index, last = a->padded - extent;

    return min_i64(start, last);
}

void window_importance(const window_settings *s, float *out)
{
    int64_t count = (int64_t)s->extent[0] * s->extent[1] * s->extent[2];
    double smallest = INFINITY;

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
