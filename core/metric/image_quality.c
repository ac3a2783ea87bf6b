/*
 * image_quality.c - mean errors, and the structural similarity by gaussian moments along one axis
 * after another.
 *
 * The window slides plane by plane: its weighted sum over planes of moments, then the sums along
 * both axes of that plane. So memory is a few planes, not a volume of moments.
 */
#include "metric/image_quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"

enum { MOMENTS = 5, WINDOW_MAX = 33, LANES = 8 };

const ssim_window image_quality_window = { 11, 1.5 };

/* The weights of a window along an axis; of an axis of extent 1 the weight is 1. */
typedef struct window_axis {
    int size;
    int64_t places;           /* positions of the window along the axis                           */
    double weight[WINDOW_MAX];
} window_axis;

typedef struct similarity_sum {
    const float *image, *truth;
    const int64_t *extent;
    double range;
    window_axis axis[3];
    int64_t scratch;          /* elements of a lane: two planes of moments                        */
    double *planes;           /* [LANES][scratch]                                                 */
    double *sum;              /* [axis[0].places]                                                 */
} similarity_sum;

static void fill_axis(const ssim_window *w, int64_t extent, window_axis *out)
{
    double sum = 0;

    out->size = extent == 1 ? 1 : w->size;
    out->places = extent - out->size + 1;
    for (int i = 0; i < out->size; i++) {
        double x = (i - (out->size - 1) / 2.0) / w->sigma;
        sum += out->weight[i] = exp(-x * x / 2);
    }
    for (int i = 0; i < out->size; i++)
        out->weight[i] /= sum;
}

/* Write a plane's moments x, y, x^2, y^2, xy, summed over the window's planes from 'first' on. */
static void sum_planes(const similarity_sum *s, int64_t first, double *to)
{
    int64_t plane = s->extent[1] * s->extent[2];

    memset(to, 0, (size_t)(plane * MOMENTS) * sizeof *to);
    for (int k = 0; k < s->axis[0].size; k++) {
        const float *image = s->image + (first + k) * plane;
        const float *truth = s->truth + (first + k) * plane;
        double weight = s->axis[0].weight[k], *m = to;

        for (int64_t i = 0; i < plane; i++, m += MOMENTS) {
            double x = image[i], y = truth[i];

            m[0] += weight * x;
            m[1] += weight * y;
            m[2] += weight * (x * x);
            m[3] += weight * (y * y);
            m[4] += weight * (x * y);
        }
    }
}

/* The weighted sum of 'size' rows of 'count' elements; rows begin 'step' elements apart. */
static void sum_axis(const window_axis *a, const double *from, int64_t count, int64_t step,
                     double *to)
{
    memset(to, 0, (size_t)count * sizeof *to);
    for (int k = 0; k < a->size; k++)
        for (int64_t i = 0; i < count; i++)
            to[i] += a->weight[k] * from[k * step + i];
}

/* The similarity of a place from its moments. */
static double similarity(const double m[MOMENTS], double range)
{
    double c1 = 0.01 * range * 0.01 * range, c2 = 0.03 * range * 0.03 * range;
    double x = m[2] - m[0] * m[0], y = m[3] - m[1] * m[1], both = m[4] - m[0] * m[1];

    return (2 * m[0] * m[1] + c1) * (2 * both + c2)
         / ((m[0] * m[0] + m[1] * m[1] + c1) * (x + y + c2));
}

/* The sum of the similarities of a plane of places. */
static double plane_similarity(const similarity_sum *s, int64_t first, double *scratch)
{
    int64_t row = s->extent[2] * MOMENTS;
    double *rows = scratch + s->extent[1] * row, sum = 0;

    sum_planes(s, first, scratch);
    sum_axis(&s->axis[1], scratch, s->axis[1].places * row, row, rows);
    for (int64_t j = 0; j < s->axis[1].places; j++) {
        sum_axis(&s->axis[2], rows + j * row, s->axis[2].places * MOMENTS, MOMENTS, scratch);
        for (int64_t k = 0; k < s->axis[2].places; k++)
            sum += similarity(scratch + k * MOMENTS, s->range);
    }
    return sum;
}

/* Each lane has the planes lane, lane + LANES, ... */
static void sum_lanes(void *context, int64_t first, int64_t end)
{
    const similarity_sum *s = context;

    for (int64_t lane = first; lane < end; lane++)
        for (int64_t i = lane; i < s->axis[0].places; i += LANES)
            s->sum[i] = plane_similarity(s, i, s->planes + lane * s->scratch);
}

static pons_status measure_ssim(similarity_sum *s, double *out, pons_error *err)
{
    int64_t lanes = min_i64(LANES, s->axis[0].places);
    double sum = 0;

    s->scratch = (s->extent[1] + s->axis[1].places) * s->extent[2] * MOMENTS;
    s->planes = malloc((size_t)(lanes * s->scratch) * sizeof *s->planes);
    s->sum = malloc((size_t)s->axis[0].places * sizeof *s->sum);
    if (s->planes == NULL || s->sum == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for the similarity of images");
    } else {
        parallel_run(lanes, 1, sum_lanes, s);
        for (int64_t i = 0; i < s->axis[0].places; i++)
            sum += s->sum[i];
        *out = sum / (double)(s->axis[0].places * s->axis[1].places * s->axis[2].places);
    }
    free(s->planes);
    free(s->sum);
    return err->status;
}

pons_status image_quality_measure(const float *image, const float *truth, const int64_t extent[3],
                                  double range, const ssim_window *window, image_quality *out,
                                  pons_error *err)
{
    similarity_sum s = { .image = image, .truth = truth, .extent = extent, .range = range };
    int64_t count = extent[0] * extent[1] * extent[2];
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
    for (int axis = 0; axis < 3; axis++) {
        fits = fits && (extent[axis] == 1 || extent[axis] >= window->size);
        if (fits)
            fill_axis(window, extent[axis], &s.axis[axis]);
    }
    return fits ? measure_ssim(&s, &out->ssim, err) : PONS_OK;
}
