/*
 * image_quality.c - mean errors, and the structural similarity by gaussian moments along one axis
 * after another.
 */
#include "metric/image_quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/parallel.h"

enum { MOMENTS = 5, WINDOW_MAX = 33 };

/* Moments x, y, x^2, y^2, xy as [place][MOMENTS]; each pass shortens an axis by the window. */
typedef struct smoothing {
    const double *from;
    double *to;
    int64_t before, extent, after; /* places in front of the axis, on it and behind it            */
    int64_t places;                /* of the window on the axis                                   */
    int size;
    double weight[WINDOW_MAX];
} smoothing;

static void fill_weights(const ssim_window *w, smoothing *s)
{
    double sum = 0;

    s->size = w->size;
    for (int i = 0; i < w->size; i++) {
        double x = (i - (w->size - 1) / 2.0) / w->sigma;
        sum += s->weight[i] = exp(-x * x / 2);
    }
    for (int i = 0; i < w->size; i++)
        s->weight[i] /= sum;
}

static void smooth_rows(void *context, int64_t first, int64_t end)
{
    const smoothing *s = context;
    int64_t row = s->after * MOMENTS;

    for (int64_t n = first; n < end; n++) {
        const double *from = s->from + (n / s->places * s->extent + n % s->places) * row;
        double *to = s->to + n * row;

        memset(to, 0, (size_t)row * sizeof *to);
        for (int k = 0; k < s->size; k++)
            for (int64_t i = 0; i < row; i++)
                to[i] += s->weight[k] * from[k * row + i];
    }
}

/* The similarity of a place from its moments. */
static double similarity(const double m[MOMENTS], double range)
{
    double c1 = 0.01 * range * 0.01 * range, c2 = 0.03 * range * 0.03 * range;
    double x = m[2] - m[0] * m[0], y = m[3] - m[1] * m[1], both = m[4] - m[0] * m[1];

    return (2 * m[0] * m[1] + c1) * (2 * both + c2)
         / ((m[0] * m[0] + m[1] * m[1] + c1) * (x + y + c2));
}

static int64_t count_of(const int64_t extent[3])
{
    return extent[0] * extent[1] * extent[2];
}

static void fill_moments(const float *image, const float *truth, int64_t count, double *m)
{
    for (int64_t i = 0; i < count; i++, m += MOMENTS) {
        double x = image[i], y = truth[i];
        double of[MOMENTS] = { x, y, x * x, y * y, x * y };

        memcpy(m, of, sizeof of);
    }
}

static double mean_similarity(const double *m, int64_t places, double range)
{
    double sum = 0;

    for (int64_t i = 0; i < places; i++)
        sum += similarity(m + i * MOMENTS, range);
    return sum / (double)places;
}

static pons_status measure_ssim(const float *image, const float *truth, const int64_t extent[3],
                                double range, const ssim_window *window, double *out,
                                pons_error *err)
{
    size_t size = (size_t)count_of(extent) * MOMENTS * sizeof(double);
    double *a = malloc(size), *b = malloc(size);
    int64_t left[3] = { extent[0], extent[1], extent[2] };
    smoothing s = { .before = 1 };

    if (a == NULL || b == NULL) {
        free(a);
        free(b);
        return pons_fail(err, PONS_DEVICE, "out of memory for the similarity of images");
    }
    fill_weights(window, &s);
    fill_moments(image, truth, count_of(extent), a);
    for (int axis = 0; axis < 3; axis++) {
        double *swap = a;

        if (extent[axis] == 1)
            continue;
        s.before = axis == 0 ? 1 : left[0] * (axis == 2 ? left[1] : 1);
        s.extent = left[axis];
        s.places = left[axis] - window->size + 1;
        s.after = (axis < 2 ? left[2] : 1) * (axis == 0 ? left[1] : 1);
        s.from = a;
        s.to = b;
        parallel_run(s.before * s.places, 1, smooth_rows, &s);
        left[axis] = s.places;
        a = b;
        b = swap;
    }
    *out = mean_similarity(a, count_of(left), range);
    free(a);
    free(b);
    return PONS_OK;
}

pons_status image_quality_measure(const float *image, const float *truth, const int64_t extent[3],
                                  double range, const ssim_window *window, image_quality *out,
                                  pons_error *err)
{
    int64_t count = count_of(extent);
    double square = 0, absolute = 0;
    bool fits = window->size <= WINDOW_MAX;

    for (int64_t i = 0; i < count; i++) {
        double away = (double)image[i] - truth[i];
        square += away * away;
        absolute += fabs(away);
    }
    out->mae = absolute / (double)count;
    out->psnr = 20 * log10(range) - 10 * log10(square / (double)count);
    out->ssim = NAN;
    for (int axis = 0; axis < 3; axis++)
        fits = fits && (extent[axis] == 1 || extent[axis] >= window->size);
    return fits ? measure_ssim(image, truth, extent, range, window, &out->ssim, err) : PONS_OK;
}
