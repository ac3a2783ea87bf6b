/*
 * patch_extract.c - copy the voxels of a patch from a packed case through the sample's map.
 *
 * Flips and quarter turns are signed permutations of the axes: each patch axis runs along one axis
 * of the case, and the patch is copied row by row. Other maps interpolate (patch_interpolate.h).
 */
#include "data/loader/patch_extract.h"

#include <math.h>
#include <string.h>

#include "data/loader/patch_interpolate.h"

typedef struct extraction {
    const packed_case *p;
    const pons_sample *sample;
    const int64_t *start;
    loader_pad pad;
    int64_t first, count;      /* planes along the patch's first axis                             */
    float *image;
    uint8_t *label;
} extraction;

/* The patch axis that row i of the map reads along, and its direction; false: several axes. */
static bool row_axis(const pons_sample *s, int i, int *axis, bool *back)
{
    int found = 0;

    for (int j = 0; j < 3; j++) {
        double x = s->map[i][j];
        if (x != 0 && x != 1 && x != -1)
            return false;
        if (x != 0) {
            *axis = j;
            *back = x < 0;
            found++;
        }
    }
    return found == 1 && s->map[i][3] == 0;
}

static bool map_permutes(const pons_sample *s, int axis[3], bool back[3])
{
    if (s->displaced)
        return false;
    for (int i = 0; i < 3; i++) {
        if (!row_axis(s, i, &axis[i], &back[i]))
            return false;
    }
    return axis[0] != axis[1] && axis[0] != axis[2] && axis[1] != axis[2];
}

/* The patch axis that row i of the map mostly reads along. */
static int nearest_axis(const pons_sample *s, int i)
{
    int axis = 0;

    for (int j = 1; j < 3; j++)
        if (fabs(s->map[i][j]) > fabs(s->map[i][axis]))
            axis = j;
    return axis;
}

void patch_extract_box(const pons_sample *sample, int64_t extent[3])
{
    int axis[] = { nearest_axis(sample, 0), nearest_axis(sample, 1), nearest_axis(sample, 2) };
    bool permutes = axis[0] != axis[1] && axis[0] != axis[2] && axis[1] != axis[2];

    for (int i = 0; i < 3; i++)
        extent[i] = sample->extent[permutes ? axis[i] : i];
}

uint8_t patch_extract_outside(loader_pad pad)
{
    return (pad & LOADER_PAD_UNCOUNTED) != 0 ? TARGET_IGNORED : 0;
}

/* ---- signed permutations --------------------------------------------------------------------- */

/*
 * A patch axis along an axis of the case. Indices low .. high - 1 lie in the case; index t is at
 * voxel offset begin + t * step.
 */
typedef struct axis_steps {
    int64_t begin, step, low, high;
} axis_steps;

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The patch axis of 'count' indices that runs along axis i of the case. */
static axis_steps steps_along(const extraction *c, int i, int64_t count, bool back)
{
    const int64_t *n = c->p->image.extent;
    int64_t stride = i == 0 ? n[1] * n[2] : i == 1 ? n[2] : 1, start = c->start[i];
    int64_t last = start + count; /* one beyond the box */

    if (back)
        return (axis_steps){ (last - 1) * stride, -stride, clamp(last - n[i], 0, count),
                             clamp(last, 0, count) };
    return (axis_steps){ start * stride, stride, clamp(-start, 0, count),
                         clamp(n[i] - start, 0, count) };
}

static bool steps_contain(const axis_steps *w, int64_t t)
{
    return t >= w->low && t < w->high;
}

/* The offset of the nearest voxel in the case; every box overlaps its case. */
static int64_t steps_nearest(const axis_steps *w, int64_t t)
{
    return w->begin + clamp(t, w->low, w->high - 1) * w->step;
}

#define COPY_FROM_TABLE(TYPE)                                                                     \
    do {                                                                                          \
        const TYPE *code = (const TYPE *)p->codes + from;                                         \
        for (int64_t t = 0; t < count; t++)                                                       \
            to[t] = p->table[code[t * step]];                                                     \
    } while (0)

/* Copy values of one channel: to[t] = value at from + t * step. */
static void copy_values(const packed_case *p, int64_t from, int64_t step, int64_t count,
                        float *restrict to)
{
    const float *values = (const float *)p->codes + from;

    if (p->code_size == 2)
        COPY_FROM_TABLE(uint16_t);
    else if (p->code_size == 1)
        COPY_FROM_TABLE(uint8_t);
    else if (step == 1)
        memcpy(to, values, (size_t)count * sizeof *to);
    else if (step == -1)
        for (int64_t t = 0; t < count; t++)
            to[t] = values[-t];
    else
        for (int64_t t = 0; t < count; t++)
            to[t] = values[t * step];
}

static void copy_voxels(const packed_case *p, int64_t from, int64_t step, int64_t count, float *to)
{
    int64_t channels = p->image.channels;

    if (channels == 1) {
        copy_values(p, from, step, count, to);
        return;
    }
    for (int64_t t = 0; t < count; t++)
        copy_values(p, (from + t * step) * channels, 1, channels, to + t * channels);
}

static void copy_labels(const packed_case *p, int64_t from, int64_t step, int64_t count,
                        uint8_t *restrict to)
{
    int64_t channels = p->label.channels;
    const uint8_t *target = p->target + from * channels;

    if (step == 1)
        memcpy(to, target, (size_t)(count * channels));
    else if (channels == 1 && step == -1)
        for (int64_t t = 0; t < count; t++)
            to[t] = target[-t];
    else if (channels == 1)
        for (int64_t t = 0; t < count; t++)
            to[t] = target[t * step];
    else
        for (int64_t t = 0; t < count; t++)
            memcpy(to + t * channels, target + t * step * channels, (size_t)channels);
}

/* Fill indices begin .. end - 1 of a row, which lie outside the case; 'base' is its nearest row. */
static void pad_row(const extraction *c, int64_t base, const axis_steps *w, int64_t begin,
                    int64_t end, float *image)
{
    int64_t channels = c->p->image.channels;

    if ((c->pad & LOADER_PAD_EDGE) != 0)
        copy_voxels(c->p, base + steps_nearest(w, begin), 0, end - begin, image + begin * channels);
    else
        memset(image + begin * channels, 0, (size_t)((end - begin) * channels) * sizeof *image);
}

static void extract_row(const extraction *c, const axis_steps w[3], int64_t d, int64_t h,
                        float *image, uint8_t *label)
{
    int64_t base = steps_nearest(&w[0], d) + steps_nearest(&w[1], h), count = c->sample->extent[2];
    int64_t low = w[2].low, high = w[2].high, from = base + w[2].begin + low * w[2].step;
    bool inside = steps_contain(&w[0], d) && steps_contain(&w[1], h);

    if (inside || (c->pad & LOADER_PAD_EDGE) != 0)
        copy_voxels(c->p, from, w[2].step, high - low, image + low * c->p->image.channels);
    else
        pad_row(c, base, &w[2], low, high, image);
    pad_row(c, base, &w[2], 0, low, image);
    pad_row(c, base, &w[2], high, count, image);
    if (label == NULL)
        return;
    if (!inside || high - low < count)
        memset(label, patch_extract_outside(c->pad), (size_t)(count * c->p->label.channels));
    if (inside)
        copy_labels(c->p, from, w[2].step, high - low, label + low * c->p->label.channels);
}

static void extract_permuted(const extraction *c, const int axis[3], const bool back[3])
{
    const int64_t *e = c->sample->extent;
    int channels = c->p->image.channels, label_channels = c->p->label.channels;
    axis_steps w[3];

    for (int i = 0; i < 3; i++)
        w[axis[i]] = steps_along(c, i, e[axis[i]], back[i]);
    for (int64_t d = c->first; d < c->first + c->count; d++)
        for (int64_t h = 0; h < e[1]; h++) {
            int64_t row = (d * e[1] + h) * e[2];
            extract_row(c, w, d, h, c->image + row * channels,
                        c->label != NULL ? c->label + row * label_channels : NULL);
        }
}

/* Write the offsets of indices 0 .. count - 1 of an axis; -1: outside the case. */
static void write_offsets(const axis_steps *w, int64_t count, loader_pad pad, int32_t *image,
                          int32_t *label)
{
    for (int64_t t = 0; t < count; t++) {
        label[t] = steps_contain(w, t) ? (int32_t)steps_nearest(w, t) : -1;
        image[t] = (pad & LOADER_PAD_EDGE) != 0 ? (int32_t)steps_nearest(w, t) : label[t];
    }
}

bool patch_extract_offsets(const packed_case *p, const pons_sample *sample, const int64_t start[3],
                           loader_pad pad, int32_t *image, int32_t *label)
{
    const int64_t *e = sample->extent, before[] = { 0, e[0], e[0] + e[1] };
    const extraction c = { .p = p, .sample = sample, .start = start, .pad = pad };
    int axis[3];
    bool back[3];

    if (!map_permutes(sample, axis, back))
        return false;
    for (int i = 0; i < 3; i++) {
        axis_steps w = steps_along(&c, i, e[axis[i]], back[i]);
        write_offsets(&w, e[axis[i]], pad, image + before[axis[i]], label + before[axis[i]]);
    }
    return true;
}

void patch_extract(const packed_case *p, const pons_sample *sample, const int64_t start[3],
                   loader_pad pad, int64_t first, int64_t count, float *image, uint8_t *label)
{
    extraction c = { p, sample, start, pad, first, count, image, p->target != NULL ? label : NULL };
    int axis[3];
    bool back[3];

    if (map_permutes(sample, axis, back))
        extract_permuted(&c, axis, back);
    else
        patch_interpolate(p, sample, start, pad, first, count, image, c.label);
}
