/*
 * window.c - starts, importance maps and stitching. The network is behind window_predictor.
 *
 * Nothing is padded in memory: each axis has a table that says where a voxel of the padded volume
 * comes from.
 */
#include "train/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

    return start < last ? start : last;
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

/* ---- stitching ------------------------------------------------------------------------------- */

typedef struct stitch {
    const window_settings *settings;
    const window_predictor *predictor;
    window_axis axis[3];
    int64_t *source[3];    /* padded position -> image position, -1: zero                         */
    int64_t volume;        /* voxels of a window                                                  */
    float *importance;
    float *sum;            /* of a batch over flips, [batch][window][classes]                     */
    float *weight;         /* of the image's voxels, summed                                       */
    const float *image;
    float *out;
} stitch;

static int64_t wrap(int64_t x, int64_t n)
{
    x %= n;
    return x < 0 ? x + n : x;
}

static int64_t source_of(window_padding padding, int64_t x, int64_t n)
{
    if (x >= 0 && x < n)
        return x;
    switch (padding) {
    case WINDOW_PAD_REPLICATE:
        return x < 0 ? 0 : n - 1;
    case WINDOW_PAD_CIRCULAR:
        return wrap(x, n);
    case WINDOW_PAD_REFLECT: {
        int64_t period = n > 1 ? 2 * (n - 1) : 1, y = wrap(x, period);
        return y < n ? y : period - y;
    }
    case WINDOW_PAD_CONSTANT:
        break;
    }
    return -1;
}

static void window_start(const stitch *s, int64_t number, int64_t start[3])
{
    for (int a = 2; a >= 0; a--) {
        int index = (int)(number % s->axis[a].count);
        start[a] = window_axis_start(&s->axis[a], s->settings->extent[a], index);
        number /= s->axis[a].count;
    }
}

/* Where row (i, j) of a window lies in its flipped copy. */
static int64_t flipped_row(const window_settings *s, unsigned flip, int64_t i, int64_t j)
{
    if (flip & 1)
        i = s->extent[0] - 1 - i;
    if (flip & 2)
        j = s->extent[1] - 1 - j;
    return i * s->extent[1] + j;
}

static void cut_window(const stitch *s, int64_t number, unsigned flip, float *to)
{
    const int *extent = s->settings->extent;
    int channels = s->predictor->channels;
    int64_t start[3];

    window_start(s, number, start);
    for (int64_t i = 0; i < extent[0]; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            float *row = to + flipped_row(s->settings, flip, i, j) * extent[2] * channels;
            int64_t x = s->source[0][start[0] + i], y = s->source[1][start[1] + j];
            for (int64_t k = 0; k < extent[2]; k++) {
                float *voxel = row + (flip & 4 ? extent[2] - 1 - k : k) * channels;
                int64_t z = s->source[2][start[2] + k];
                if (x < 0 || y < 0 || z < 0)
                    memset(voxel, 0, (size_t)channels * sizeof *voxel);
                else
                    memcpy(voxel, s->image + ((x * s->axis[1].size + y) * s->axis[2].size + z)
                           * channels, (size_t)channels * sizeof *voxel);
            }
        }
    }
}

/* sum of one window += its flipped logits, flipped back, times 'share'. */
static void add_flipped(const stitch *s, unsigned flip, double share, const float *logits,
                        float *sum)
{
    const int *extent = s->settings->extent;
    int classes = s->predictor->classes;

    for (int64_t i = 0; i < extent[0]; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            const float *row = logits + flipped_row(s->settings, flip, i, j) * extent[2] * classes;
            for (int64_t k = 0; k < extent[2]; k++) {
                const float *voxel = row + (flip & 4 ? extent[2] - 1 - k : k) * classes;
                for (int c = 0; c < classes; c++)
                    *sum++ += (float)(voxel[c] * share);
            }
        }
    }
}

static void blend_window(stitch *s, int64_t number, const float *logits)
{
    const int *extent = s->settings->extent;
    int classes = s->predictor->classes;
    int64_t start[3];

    window_start(s, number, start);
    for (int64_t i = 0; i < extent[0]; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            int64_t x = start[0] + i - s->axis[0].low, y = start[1] + j - s->axis[1].low;
            if (x < 0 || x >= s->axis[0].size || y < 0 || y >= s->axis[1].size)
                continue;
            for (int64_t k = 0; k < extent[2]; k++) {
                int64_t z = start[2] + k - s->axis[2].low;
                if (z < 0 || z >= s->axis[2].size)
                    continue;
                int64_t from = (i * extent[1] + j) * extent[2] + k;
                int64_t to = (x * s->axis[1].size + y) * s->axis[2].size + z;
                float w = s->importance[from];
                for (int c = 0; c < classes; c++)
                    s->out[to * classes + c] += w * logits[from * classes + c];
                s->weight[to] += w;
            }
        }
    }
}

/* Predict windows first .. first + count - 1; a short batch is filled with its last window. */
static pons_status predict_batch(stitch *s, int64_t first, int count, pons_error *err)
{
    const window_settings *w = s->settings;
    const window_predictor *p = s->predictor;
    const float *logits = NULL;
    double share = 1.0 / (double)(1 << __builtin_popcount(w->mirror & 7));

    memset(s->sum, 0, (size_t)(count * s->volume * p->classes) * sizeof *s->sum);
    for (unsigned flip = 0; flip < 8; flip++) {
        if ((flip & ~w->mirror) != 0)
            continue;
        for (int b = 0; b < w->batch; b++)
            cut_window(s, first + (b < count ? b : count - 1), flip,
                       p->input + b * s->volume * p->channels);
        if (p->run(p->context, &logits, err) != PONS_OK)
            return err->status;
        for (int b = 0; b < count; b++) {
            int64_t at = b * s->volume * p->classes;
            add_flipped(s, flip, share, logits + at, s->sum + at);
        }
    }
    for (int b = 0; b < count; b++)
        blend_window(s, first + b, s->sum + b * s->volume * p->classes);
    return PONS_OK;
}

static pons_status stitch_open(stitch *s, pons_error *err)
{
    const window_settings *w = s->settings;
    int64_t voxels = s->axis[0].size * s->axis[1].size * s->axis[2].size;
    bool good = true;

    s->volume = (int64_t)w->extent[0] * w->extent[1] * w->extent[2];
    s->importance = malloc((size_t)s->volume * sizeof *s->importance);
    s->sum = malloc((size_t)(w->batch * s->volume * s->predictor->classes) * sizeof *s->sum);
    s->weight = calloc((size_t)voxels, sizeof *s->weight);
    for (int a = 0; a < 3; a++) {
        s->source[a] = malloc((size_t)s->axis[a].padded * sizeof *s->source[a]);
        good = good && s->source[a] != NULL;
    }
    if (!good || s->importance == NULL || s->sum == NULL || s->weight == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for windows over %lld voxels",
                         (long long)voxels);
    for (int a = 0; a < 3; a++) {
        for (int64_t x = 0; x < s->axis[a].padded; x++)
            s->source[a][x] = source_of(w->padding, x - s->axis[a].low, s->axis[a].size);
    }
    window_importance(w, s->importance);
    memset(s->out, 0, (size_t)(voxels * s->predictor->classes) * sizeof *s->out);
    return PONS_OK;
}

static void stitch_close(stitch *s)
{
    free(s->importance);
    free(s->sum);
    free(s->weight);
    for (int a = 0; a < 3; a++)
        free(s->source[a]);
}

pons_status window_stitch(const window_settings *settings, const int64_t size[3],
                          const float *image, const window_predictor *p, float *out,
                          pons_error *err)
{
    stitch s = { .settings = settings, .predictor = p, .image = image, .out = out };
    int64_t windows = 1, voxels = size[0] * size[1] * size[2];
    pons_status status;

    for (int a = 0; a < 3; a++) {
        s.axis[a] = window_axis_make(size[a], settings->extent[a], settings->overlap[a]);
        windows *= s.axis[a].count;
    }
    status = stitch_open(&s, err);
    for (int64_t first = 0; status == PONS_OK && first < windows; first += settings->batch) {
        int64_t left = windows - first;
        status = predict_batch(&s, first, left < settings->batch ? (int)left : settings->batch,
                               err);
    }
    for (int64_t i = 0; status == PONS_OK && i < voxels; i++) {
        for (int c = 0; c < p->classes; c++)
            out[i * p->classes + c] /= s.weight[i];
    }
    stitch_close(&s);
    return status;
}
