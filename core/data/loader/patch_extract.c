/*
 * patch_extract.c - copy the voxels of a patch out of a packed case, through the sample's map.
 *
 * Flips and quarter turns are signed permutations of the axes: each patch axis walks along one axis
 * of the case in even steps, so a patch is copied row by row. Other maps take eight neighbours per
 * voxel.
 */
#include "data/loader/patch_extract.h"

#include <math.h>
#include <string.h>

#include "base/whole.h"

#define OUTSIDE INT64_MIN

/* A place that no volume reaches. */
#define FAR (INT64_C(1) << 40)

typedef struct cutter {
    const packed_case *p;
    const pons_sample *sample;
    const int64_t *start;
    loader_pad pad;
    int64_t first, count;      /* planes along the patch's first axis                             */
    float *image;
    uint8_t *label;
} cutter;

/* The patch axis that row i of the map reads along and its direction; false: it is no such row. */
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
    for (int i = 0; i < 3; i++) {
        if (!row_axis(s, i, &axis[i], &back[i]))
            return false;
    }
    return axis[0] != axis[1] && axis[0] != axis[2] && axis[1] != axis[2];
}

void patch_box(const pons_sample *sample, int64_t extent[3])
{
    int axis[3];
    bool back[3];
    bool permutes = map_permutes(sample, axis, back);

    for (int i = 0; i < 3; i++)
        extent[i] = sample->extent[permutes ? axis[i] : i];
}

/* ---- signed permutations --------------------------------------------------------------------- */

/* Along an axis of the patch: its places low .. high - 1 lie in the case, place t of them at voxel
 * offset begin + t * step. */
typedef struct walk {
    int64_t begin, step, low, high;
} walk;

static int64_t bounded(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The patch axis of 'count' places that goes along axis i of the case. */
static walk walk_along(const cutter *c, int i, int64_t count, bool back)
{
    const int64_t *n = c->p->image.extent;
    int64_t stride = i == 0 ? n[1] * n[2] : i == 1 ? n[2] : 1, start = c->start[i];
    int64_t last = start + count; /* behind the box */

    if (back)
        return (walk){ (last - 1) * stride, -stride, bounded(last - n[i], 0, count),
                       bounded(last, 0, count) };
    return (walk){ start * stride, stride, bounded(-start, 0, count),
                   bounded(n[i] - start, 0, count) };
}

static bool walk_holds(const walk *w, int64_t t)
{
    return t >= w->low && t < w->high;
}

/* Of the nearest voxel; every box meets its case. */
static int64_t walk_nearest(const walk *w, int64_t t)
{
    return w->begin + bounded(t, w->low, w->high - 1) * w->step;
}

#define LOOK_UP(TYPE)                                                                             \
    do {                                                                                          \
        const TYPE *code = (const TYPE *)p->codes + from;                                         \
        for (int64_t t = 0; t < count; t++)                                                       \
            to[t] = p->table[code[t * step]];                                                     \
    } while (0)

/* Values of one channel: to[t] = value from + t * step. */
static void copy_values(const packed_case *p, int64_t from, int64_t step, int64_t count,
                        float *restrict to)
{
    const float *values = (const float *)p->codes + from;

    if (p->code_size == 2)
        LOOK_UP(uint16_t);
    else if (p->code_size == 1)
        LOOK_UP(uint8_t);
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

/* Places begin .. end - 1 of a row, outside of the case, where 'base' is its nearest row. */
static void pad_row(const cutter *c, int64_t base, const walk *w, int64_t begin, int64_t end,
                    float *image)
{
    int64_t channels = c->p->image.channels;

    if (c->pad == LOADER_PAD_EDGE)
        copy_voxels(c->p, base + walk_nearest(w, begin), 0, end - begin, image + begin * channels);
    else
        memset(image + begin * channels, 0, (size_t)((end - begin) * channels) * sizeof *image);
}

static void cut_row(const cutter *c, const walk w[3], int64_t d, int64_t h, float *image,
                    uint8_t *label)
{
    int64_t base = walk_nearest(&w[0], d) + walk_nearest(&w[1], h), count = c->sample->extent[2];
    int64_t low = w[2].low, high = w[2].high, from = base + w[2].begin + low * w[2].step;
    bool inside = walk_holds(&w[0], d) && walk_holds(&w[1], h);

    if (inside || c->pad == LOADER_PAD_EDGE)
        copy_voxels(c->p, from, w[2].step, high - low, image + low * c->p->image.channels);
    else
        pad_row(c, base, &w[2], low, high, image);
    pad_row(c, base, &w[2], 0, low, image);
    pad_row(c, base, &w[2], high, count, image);
    if (label == NULL)
        return;
    if (!inside || high - low < count)
        memset(label, 0, (size_t)(count * c->p->label.channels));
    if (inside)
        copy_labels(c->p, from, w[2].step, high - low, label + low * c->p->label.channels);
}

static void cut_exact(const cutter *c, const int axis[3], const bool back[3])
{
    const int64_t *e = c->sample->extent;
    int channels = c->p->image.channels, label_channels = c->p->label.channels;
    walk w[3];

    for (int i = 0; i < 3; i++)
        w[axis[i]] = walk_along(c, i, e[axis[i]], back[i]);
    for (int64_t d = c->first; d < c->first + c->count; d++)
        for (int64_t h = 0; h < e[1]; h++) {
            int64_t row = (d * e[1] + h) * e[2];
            cut_row(c, w, d, h, c->image + row * channels,
                    c->label != NULL ? c->label + row * label_channels : NULL);
        }
}

/* Along the axis of 'w', places 0 .. count - 1. */
static void tell_places(const walk *w, int64_t count, loader_pad pad, int32_t *image,
                        int32_t *label)
{
    for (int64_t t = 0; t < count; t++) {
        label[t] = walk_holds(w, t) ? (int32_t)walk_nearest(w, t) : -1;
        image[t] = pad == LOADER_PAD_EDGE ? (int32_t)walk_nearest(w, t) : label[t];
    }
}

bool patch_places(const packed_case *p, const pons_sample *sample, const int64_t start[3],
                  loader_pad pad, int32_t *image, int32_t *label)
{
    const int64_t *e = sample->extent, before[] = { 0, e[0], e[0] + e[1] };
    const cutter c = { .p = p, .sample = sample, .start = start, .pad = pad };
    int axis[3];
    bool back[3];

    if (!map_permutes(sample, axis, back))
        return false;
    for (int i = 0; i < 3; i++) {
        walk w = walk_along(&c, i, e[axis[i]], back[i]);
        tell_places(&w, e[axis[i]], pad, image + before[axis[i]], label + before[axis[i]]);
    }
    return true;
}

/* ---- any map --------------------------------------------------------------------------------- */

/* Offset of a voxel of the case; OUTSIDE where there is none and nothing is repeated. */
static int64_t voxel_at(const cutter *c, const int64_t at[3], bool repeat)
{
    const int64_t *n = c->p->image.extent;
    int64_t offset = 0;

    for (int i = 0; i < 3; i++) {
        int64_t inside = at[i] < 0 ? 0 : at[i] >= n[i] ? n[i] - 1 : at[i];
        if (inside != at[i] && !repeat)
            return OUTSIDE;
        offset = offset * n[i] + inside;
    }
    return offset;
}

static void put_label(const cutter *c, int64_t from, int64_t to)
{
    size_t channels = (size_t)c->p->label.channels;

    if (c->label == NULL)
        return;
    if (from == OUTSIDE)
        memset(c->label + (size_t)to * channels, 0, channels);
    else
        memcpy(c->label + (size_t)to * channels, c->p->target + (size_t)from * channels, channels);
}

static void blend_voxel(const cutter *c, const double x[3], int64_t to)
{
    int channels = c->p->image.channels;
    float *out = c->image + to * channels;

    memset(out, 0, (size_t)channels * sizeof *out);
    for (int corner = 0; corner < 8; corner++) {
        double weight = 1;
        int64_t at[3];
        for (int i = 0; i < 3; i++) {
            double low = floor(x[i]), share = x[i] - low;
            bool up = corner >> i & 1;
            at[i] = whole_within(low, -FAR, FAR) + up;
            weight *= up ? share : 1 - share;
        }
        int64_t from = voxel_at(c, at, c->pad == LOADER_PAD_EDGE);
        for (int k = 0; k < channels && from != OUTSIDE && weight > 0; k++)
            out[k] += (float)weight * packed_value(c->p, from * channels + k);
    }
}

static void cut_blended(const cutter *c)
{
    const int64_t *e = c->sample->extent;
    int64_t to = c->first * e[1] * e[2];

    for (int64_t d = c->first; d < c->first + c->count; d++) {
        for (int64_t h = 0; h < e[1]; h++) {
            for (int64_t w = 0; w < e[2]; w++, to++) {
                const int64_t place[3] = { d, h, w };
                double x[3];
                int64_t nearest[3];
                for (int i = 0; i < 3; i++) {
                    const double *row = c->sample->map[i];
                    x[i] = (double)c->start[i] + 0.5 * (double)(e[i] - 1) + row[3];
                    for (int j = 0; j < 3; j++)
                        x[i] += row[j] * ((double)place[j] - 0.5 * (double)(e[j] - 1));
                    nearest[i] = whole_within(rint(x[i]), -FAR, FAR);
                }
                blend_voxel(c, x, to);
                put_label(c, voxel_at(c, nearest, false), to);
            }
        }
    }
}

void patch_cut(const packed_case *p, const pons_sample *sample, const int64_t start[3],
               loader_pad pad, int64_t first, int64_t count, float *image, uint8_t *label)
{
    cutter c = { p, sample, start, pad, first, count, image, p->target != NULL ? label : NULL };
    int axis[3];
    bool back[3];

    if (map_permutes(sample, axis, back))
        cut_exact(&c, axis, back);
    else
        cut_blended(&c);
}
