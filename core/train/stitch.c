/*
 * stitch.c - cutting windows out of an image and joining their logits. The network is behind
 * window_predictor.
 *
 * Nothing is padded in memory: each axis has a table that says where a voxel of the padded volume
 * comes from.
 */
#include "train/stitch.h"

#include "base/pages.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 }; /* voxels that a thread takes at a time */

struct stitch {
    window_settings settings;
    int channels, classes;
    window_axis axis[3];
    int64_t *source[3];    /* padded position -> image position, -1: zero                         */
    int64_t windows, volume; /* windows of the image; voxels of a window                          */
    float *importance;
    float *share;          /* a row's importance, once for each class                             */
    float *weight;         /* of the image's voxels, summed                                       */
    const float *image;
    float *out;
};

/* ---- geometry -------------------------------------------------------------------------------- */

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
        start[a] = window_axis_start(&s->axis[a], s->settings.extent[a], index);
        number /= s->axis[a].count;
    }
}

/* Places of a window along k that lie in the image: first .. end - 1. */
static void inside_row(const stitch *s, int64_t start, int64_t *first, int64_t *end)
{
    int64_t low = s->axis[2].low - start, high = low + s->axis[2].size;

    *first = low > 0 ? low : 0;
    *end = high < s->settings.extent[2] ? high : s->settings.extent[2];
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

/* ---- predict --------------------------------------------------------------------------------- */

/* Places first .. end - 1 along k of a row of the image, voxel by voxel. */
static void cut_voxels(const stitch *s, const float *line, int64_t start, unsigned flip,
                       int64_t first, int64_t end, float *row)
{
    int64_t last = s->settings.extent[2] - 1, channels = s->channels;

    for (int64_t k = first; k < end; k++) {
        float *voxel = row + (flip & 4 ? last - k : k) * channels;
        int64_t z = s->source[2][start + k];
        for (int64_t c = 0; c < channels; c++)
            voxel[c] = z < 0 ? 0 : line[z * channels + c];
    }
}

/* What lies in the image as a whole, unless it is turned round, and the padding beside it. */
static void cut_row(const stitch *s, const float *line, int64_t start, unsigned flip, float *row)
{
    int64_t extent = s->settings.extent[2], channels = s->channels, first = 0, end = 0;

    if (!(flip & 4)) {
        inside_row(s, start, &first, &end);
        memcpy(row + first * channels, line + (start + first - s->axis[2].low) * channels,
               (size_t)((end - first) * channels) * sizeof *row);
    }
    cut_voxels(s, line, start, flip, 0, first, row);
    cut_voxels(s, line, start, flip, end, extent, row);
}

static void cut_window(const stitch *s, int64_t number, unsigned flip, float *to)
{
    const int *extent = s->settings.extent;
    int64_t row_size = (int64_t)extent[2] * s->channels;
    int64_t start[3];

    window_start(s, number, start);
    for (int64_t i = 0; i < extent[0]; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            float *row = to + flipped_row(&s->settings, flip, i, j) * row_size;
            int64_t x = s->source[0][start[0] + i], y = s->source[1][start[1] + j];
            if (x < 0 || y < 0)
                memset(row, 0, (size_t)row_size * sizeof *row);
            else
                cut_row(s, s->image + (x * s->axis[1].size + y) * s->axis[2].size * s->channels,
                        start[2], flip, row);
        }
    }
}

/* sum of one window += its flipped logits, flipped back, times 'share'. */
static void add_flipped(const stitch *s, unsigned flip, double share, const float *logits,
                        float *sum)
{
    const int *extent = s->settings.extent;
    int classes = s->classes;

    for (int64_t i = 0; i < extent[0]; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            const float *row = logits + flipped_row(&s->settings, flip, i, j) * extent[2] * classes;
            for (int64_t k = 0; k < extent[2]; k++) {
                const float *voxel = row + (flip & 4 ? extent[2] - 1 - k : k) * classes;
                for (int c = 0; c < classes; c++)
                    *sum++ += (float)(voxel[c] * share);
            }
        }
    }
}

int64_t stitch_batches(const stitch *s)
{
    return (s->windows + s->settings.batch - 1) / s->settings.batch;
}

int64_t stitch_size(const stitch *s)
{
    return s->settings.batch * s->volume * s->classes;
}

int64_t stitch_room(const stitch *s)
{
    return (s->settings.mirror & 7) != 0 ? stitch_size(s) : 0;
}

static int windows_in(const stitch *s, int64_t batch)
{
    int64_t left = s->windows - batch * s->settings.batch;

    return left < s->settings.batch ? (int)left : s->settings.batch;
}

/* A short batch is filled with its last window. */
pons_status stitch_predict(const stitch *s, int64_t batch, const window_predictor *p, float *sum,
                           const float **logits, pons_error *err)
{
    const window_settings *w = &s->settings;
    int count = windows_in(s, batch);
    int64_t size = s->volume * s->classes;
    double share = 1.0 / (double)(1 << __builtin_popcount(w->mirror & 7));

    if (stitch_room(s) > 0)
        memset(sum, 0, (size_t)stitch_room(s) * sizeof *sum);
    for (unsigned flip = 0; flip < 8; flip++) {
        if ((flip & ~w->mirror) != 0)
            continue;
        for (int b = 0; b < w->batch; b++)
            cut_window(s, batch * w->batch + (b < count ? b : count - 1), flip,
                       p->input + b * s->volume * s->channels);
        if (p->run(p->context, logits, err) != PONS_OK)
            return err->status;
        for (int b = 0; b < count && stitch_room(s) > 0; b++)
            add_flipped(s, flip, share, *logits + b * size, sum + b * size);
    }
    if (stitch_room(s) > 0)
        *logits = sum;
    return PONS_OK;
}

/* ---- blend ----------------------------------------------------------------------------------- */

/* 'count' voxels of a row: out += importance x logits, and the weights beside it. */
static void blend_row(stitch *s, int64_t count, const float *importance, const float *logits,
                      float *restrict weight, float *restrict out)
{
    const float *share = importance;
    int classes = s->classes;

    if (classes > 1) {
        for (int64_t k = 0; k < count; k++)
            for (int c = 0; c < classes; c++)
                s->share[k * classes + c] = importance[k];
        share = s->share;
    }
    for (int64_t n = 0; n < count * classes; n++)
        out[n] += share[n] * logits[n];
    for (int64_t k = 0; k < count; k++)
        weight[k] += importance[k];
}

static void blend_window(stitch *s, int64_t number, const float *logits)
{
    const int *extent = s->settings.extent;
    int64_t start[3], first, end;

    window_start(s, number, start);
    inside_row(s, start[2], &first, &end);
    for (int64_t i = 0; i < extent[0]; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            int64_t x = start[0] + i - s->axis[0].low, y = start[1] + j - s->axis[1].low;
            if (x < 0 || x >= s->axis[0].size || y < 0 || y >= s->axis[1].size)
                continue;
            int64_t from = (i * extent[1] + j) * extent[2] + first;
            int64_t to = (x * s->axis[1].size + y) * s->axis[2].size
                         + start[2] + first - s->axis[2].low;
            blend_row(s, end - first, s->importance + from, logits + from * s->classes,
                      s->weight + to, s->out + to * s->classes);
        }
    }
}

void stitch_blend(stitch *s, int64_t batch, const float *logits)
{
    int count = windows_in(s, batch);

    for (int b = 0; b < count; b++)
        blend_window(s, batch * s->settings.batch + b, logits + b * s->volume * s->classes);
}

static void divide(void *context, int64_t first, int64_t end)
{
    const stitch *s = context;

    for (int64_t i = first; i < end; i++) {
        for (int c = 0; c < s->classes; c++)
            s->out[i * s->classes + c] /= s->weight[i];
    }
}

void stitch_finish(stitch *s)
{
    parallel_run(s->axis[0].size * s->axis[1].size * s->axis[2].size, PIECE, divide, s);
}

/* ---- open ------------------------------------------------------------------------------------ */

static pons_status find_room(stitch *s, pons_error *err)
{
    int64_t voxels = s->axis[0].size * s->axis[1].size * s->axis[2].size;
    int64_t row = (int64_t)s->settings.extent[2] * s->classes;
    bool good = true;

    s->importance = malloc((size_t)s->volume * sizeof *s->importance);
    s->share = malloc((size_t)row * sizeof *s->share);
    s->weight = pages_alloc_zeroed((size_t)voxels * sizeof *s->weight);
    for (int a = 0; a < 3; a++) {
        s->source[a] = malloc((size_t)s->axis[a].padded * sizeof *s->source[a]);
        good = good && s->source[a] != NULL;
    }
    if (!good || s->importance == NULL || s->share == NULL || s->weight == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for windows over %lld voxels",
                         (long long)voxels);
    return PONS_OK;
}

pons_status stitch_open(const window_settings *settings, const int64_t size[3], const float *image,
                        int channels, int classes, float *out, stitch **opened, pons_error *err)
{
    const int *extent = settings->extent;
    stitch *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for windows");
    *s = (stitch){ .settings = *settings, .channels = channels, .classes = classes, .windows = 1,
                   .volume = (int64_t)extent[0] * extent[1] * extent[2],
                   .image = image, .out = out };
    for (int a = 0; a < 3; a++) {
        s->axis[a] = window_axis_make(size[a], extent[a], settings->overlap[a]);
        s->windows *= s->axis[a].count;
    }
    if (find_room(s, err) != PONS_OK) {
        stitch_close(s);
        return err->status;
    }
    for (int a = 0; a < 3; a++) {
        for (int64_t x = 0; x < s->axis[a].padded; x++)
            s->source[a][x] = source_of(settings->padding, x - s->axis[a].low, s->axis[a].size);
    }
    window_importance(settings, s->importance);
    *opened = s;
    return PONS_OK;
}

void stitch_close(stitch *s)
{
    if (s == NULL)
        return;
    free(s->importance);
    free(s->share);
    free(s->weight);
    for (int a = 0; a < 3; a++)
        free(s->source[a]);
    free(s);
}
