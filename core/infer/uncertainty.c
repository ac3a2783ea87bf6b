/*
 * uncertainty.c - entropy and variance of a prediction over samples, which are the networks of an
 * ensemble or the flips of its windows.
 *
 *   mean      p(c) = sum over samples of p_n(c) / samples
 *   entropy   - sum over classes of p(c) ln p(c); of regions the mean over regions of
 *             - p ln p - (1 - p) ln (1 - p)
 *   variance  mean over classes of (sum over samples of (p_n(c) - p(c))^2) / samples
 *
 * Both are computed on the preprocessed grid and interpolated to the file's, as probabilities are.
 */
#include "infer/infer_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "data/volume/inverse_resample.h"

/* voxels of a parallel task; planes that are computed at a time */
enum { PIECE = 1 << 14, PLANES = 16 };

void uncertainty_add(int sample, int samples, int64_t count, const float *sum, float *squares,
                     const float *x)
{
    float scale = sample > 0 ? (float)samples / (float)sample : 0;
    float share = (float)sample / (float)(sample + 1);

    for (int64_t n = 0; n < count; n++) {
        float apart = x[n] - scale * sum[n];
        squares[n] += share * apart * apart;
    }
}

static double entropy_term(double p)
{
    return p > 0 ? -p * log(p) : 0;
}

typedef struct uncertainty_planes {
    const volume *probabilities, *squares;
    int samples;
    bool regions;             /* probabilities do not sum to 1 over classes                       */
    int64_t first;            /* first voxel                                                      */
    float *entropy, *variance;
} uncertainty_planes;

static void compute_voxels(void *context, int64_t first, int64_t end)
{
    const uncertainty_planes *u = context;
    int classes = u->probabilities->channels;

    for (int64_t at = first; at < end; at++) {
        const float *p = (const float *)u->probabilities->voxels + (u->first + at) * classes;
        const float *q = (const float *)u->squares->voxels + (u->first + at) * classes;
        double entropy = 0, squares = 0;

        for (int c = 0; c < classes; c++) {
            entropy += entropy_term(p[c]) + (u->regions ? entropy_term(1 - (double)p[c]) : 0);
            squares += q[c];
        }
        u->entropy[at] = (float)(u->regions ? entropy / classes : entropy);
        u->variance[at] = (float)(squares / classes / u->samples);
    }
}

/* Compute planes into buffers whose plane in front is the last one of the planes before. */
static void restore_planes(uncertainty_planes *u, const inverse_resample *inverse, float *buffer[2],
                           volume *out[2])
{
    const int64_t *extent = u->probabilities->extent;
    int64_t plane = extent[1] * extent[2], before = 0;

    u->entropy = buffer[0] + plane;
    u->variance = buffer[1] + plane;
    for (int64_t first = 0, end; first < extent[0]; first = end) {
        end = min_i64(first + PLANES, extent[0]);
        for (int n = 0; n < 2 && first > 0; n++)
            memcpy(buffer[n], buffer[n] + before * plane, (size_t)plane * sizeof *buffer[n]);
        u->first = first * plane;
        parallel_run((end - first) * plane, PIECE, compute_voxels, u);
        for (int n = 0; n < 2; n++)
            inverse_resample_planes(inverse, INVERSE_RESAMPLE_VALUES,
                                    buffer[n] + (first > 0 ? 0 : plane), first, end, out[n]);
        before = end - first;
    }
}

pons_status uncertainty_restore(const experiment *e, int samples, const volume *probabilities,
                                const volume *squares, const volume_grid *grid, volume *entropy,
                                volume *variance, pons_error *err)
{
    const int64_t *extent = probabilities->extent;
    size_t size = (size_t)((1 + PLANES) * extent[1] * extent[2]) * sizeof(float);
    uncertainty_planes u = { probabilities, squares, samples,
                             e->regions || e->task.classes == 1, 0, NULL, NULL };
    float *buffer[2] = { malloc(size), malloc(size) };
    volume *out[2] = { entropy, variance }, from = *probabilities;
    inverse_resample *inverse = NULL;

    from.voxels = NULL;
    from.channels = 1;
    if (buffer[0] == NULL || buffer[1] == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for planes of an uncertainty");
    else if (inverse_resample_open(&from, grid, &inverse, err) == PONS_OK
             && inverse_resample_start(inverse, INVERSE_RESAMPLE_VALUES, 0, 0, entropy, err)
                == PONS_OK
             && inverse_resample_start(inverse, INVERSE_RESAMPLE_VALUES, 0, 0, variance, err)
                == PONS_OK)
        restore_planes(&u, inverse, buffer, out);
    inverse_resample_close(inverse);
    free(buffer[0]);
    free(buffer[1]);
    return err->status;
}
