/*
 * patch_interpolate.c - sample the voxels of a patch between those of a packed case.
 *
 * The position of each voxel is the sample's map of its index plus its displacement. Voxels with
 * all eight neighbours in the case are read without tests, the others one neighbour at a time.
 */
#include "data/loader/patch_interpolate.h"

#include <math.h>
#include <string.h>

#include "base/whole.h"
#include "data/loader/patch_extract.h"

#define OUTSIDE INT64_MIN

/* A coordinate beyond every volume. */
#define FAR (INT64_C(1) << 40)

/* The class of what lies outside of the case. */
enum { NO_CLASS = -1, CORNERS = 8 };

typedef struct interpolation {
    const packed_case *p;
    const pons_sample *sample;
    bool repeat;               /* outside of the case the nearest voxel; else zeros               */
    uint8_t outside;           /* label outside of the case                                       */
    double centre[3];          /* position in the volume of the patch's centre                    */
    int64_t stride[3];         /* voxels                                                          */
} interpolation;

/* A position between voxels of the case. */
typedef struct position {
    double at[3];
    bool inside;               /* all neighbours are in the case                                  */
    int64_t low;               /* voxel of the lowest neighbour, if inside                        */
    float share[3];
} position;

static void position_find(const interpolation *c, const double at[3], position *x)
{
    const int64_t *n = c->p->image.extent;

    x->inside = true;
    x->low = 0;
    for (int i = 0; i < 3; i++) {
        x->at[i] = at[i];
        if (!(at[i] >= 0 && at[i] < (double)(n[i] - 1))) {
            x->inside = false;
            continue;
        }
        int64_t low = (int64_t)at[i];
        x->share[i] = (float)(at[i] - (double)low);
        x->low += low * c->stride[i];
    }
}

/* ---- images ---------------------------------------------------------------------------------- */

static inline float between(float a, float b, float share)
{
    return a + (b - a) * share;
}

static inline __attribute__((always_inline)) float value_at(const packed_case *p, int code_size,
                                                            int64_t at)
{
    if (code_size == 2)
        return p->table[((const uint16_t *)p->codes)[at]];
    if (code_size == 1)
        return p->table[((const uint8_t *)p->codes)[at]];
    return ((const float *)p->codes)[at];
}

static inline __attribute__((always_inline)) void
put_inside_of(const interpolation *c, const position *x, int code_size, float *out)
{
    const packed_case *p = c->p;
    int64_t channels = p->image.channels, i = c->stride[0] * channels, j = c->stride[1] * channels;

    for (int64_t k = 0; k < channels; k++) {
        int64_t at = x->low * channels + k;
        float line[4];

        for (int n = 0; n < 4; n++) {
            int64_t from = at + (n >> 1) * i + (n & 1) * j;
            line[n] = between(value_at(p, code_size, from), value_at(p, code_size, from + channels),
                              x->share[2]);
        }
        out[k] = between(between(line[0], line[1], x->share[1]),
                         between(line[2], line[3], x->share[1]), x->share[0]);
    }
}

static void put_inside(const interpolation *c, const position *x, float *out)
{
    if (c->p->code_size == 2)
        put_inside_of(c, x, 2, out);
    else if (c->p->code_size == 1)
        put_inside_of(c, x, 1, out);
    else
        put_inside_of(c, x, 4, out);
}

/* The number of a voxel; outside the case that of the nearest one ('repeat'), or OUTSIDE. */
static int64_t voxel_at(const interpolation *c, const int64_t at[3], bool repeat)
{
    const int64_t *n = c->p->image.extent;
    int64_t voxel = 0;

    for (int i = 0; i < 3; i++) {
        int64_t inside = at[i] < 0 ? 0 : at[i] >= n[i] ? n[i] - 1 : at[i];
        if (inside != at[i] && !repeat)
            return OUTSIDE;
        voxel += inside * c->stride[i];
    }
    return voxel;
}

/* Voxel and weight of one of the eight neighbours. */
static int64_t corner_at(const interpolation *c, const double at[3], int corner, bool repeat,
                         double *weight)
{
    int64_t voxel[3];

    *weight = 1;
    for (int i = 0; i < 3; i++) {
        double low = floor(at[i]), share = at[i] - low;
        bool up = corner >> i & 1;
        voxel[i] = whole_within(low, -FAR, FAR) + up;
        *weight *= up ? share : 1 - share;
    }
    return voxel_at(c, voxel, repeat);
}

static void put_at_border(const interpolation *c, const position *x, float *out)
{
    int channels = c->p->image.channels;

    memset(out, 0, (size_t)channels * sizeof *out);
    for (int corner = 0; corner < CORNERS; corner++) {
        double weight;
        int64_t from = corner_at(c, x->at, corner, c->repeat, &weight);
        for (int k = 0; k < channels && from != OUTSIDE && weight > 0; k++)
            out[k] += (float)weight * packed_case_value(c->p, from * channels + k);
    }
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Padding that nothing counts is one class with ignored voxels. */
static int class_at(const interpolation *c, int64_t voxel, int channel)
{
    if (voxel == OUTSIDE)
        return c->outside == TARGET_IGNORED ? TARGET_IGNORED : NO_CLASS;
    return c->p->target[voxel * c->p->label.channels + channel];
}

/* The class with the largest sum of weights. */
static int heaviest_class(const int class[CORNERS], const double weight[CORNERS], int nearest)
{
    double largest = 0;
    int found = nearest;

    for (int n = 0; n < CORNERS; n++) {
        double sum = 0;
        for (int m = 0; m < CORNERS; m++)
            sum += class[m] == class[n] ? weight[m] : 0;
        if (sum > largest || (sum == largest && found != nearest
                              && (class[n] == nearest || class[n] < found))) {
            largest = sum;
            found = class[n];
        }
    }
    return found;
}

/* The voxel nearest to a position, the even one of two. */
static int64_t nearest_voxel(const interpolation *c, const position *x)
{
    int64_t voxel[3];

    for (int i = 0; i < 3; i++) {
        if (x->inside) {
            voxel[i] = (int64_t)x->at[i];
            double share = x->at[i] - (double)voxel[i];
            voxel[i] += share > 0.5 || (share == 0.5 && voxel[i] % 2 != 0);
        } else {
            voxel[i] = whole_within(rint(x->at[i]), -FAR, FAR);
        }
    }
    return voxel_at(c, voxel, false);
}

static void find_corners(const interpolation *c, const position *x, int64_t voxel[CORNERS])
{
    for (int n = 0; n < CORNERS; n++) {
        double weight;
        voxel[n] = x->inside ? x->low + (n & 1) * c->stride[0] + (n >> 1 & 1) * c->stride[1]
                               + (n >> 2 & 1) * c->stride[2]
                             : corner_at(c, x->at, n, false, &weight);
    }
}

static bool has_one_class(const interpolation *c, const int64_t voxel[CORNERS], int channel)
{
    int first = class_at(c, voxel[0], channel);

    for (int n = 1; n < CORNERS; n++)
        if (class_at(c, voxel[n], channel) != first)
            return false;
    return true;
}

static int linear_class(const interpolation *c, const position *x, const int64_t voxel[CORNERS],
                        int channel)
{
    double weight[CORNERS];
    int class[CORNERS];

    for (int n = 0; n < CORNERS; n++) {
        corner_at(c, x->at, n, false, &weight[n]);
        class[n] = class_at(c, voxel[n], channel);
        if (c->p->label.channels > 1 && class[n] == TARGET_IGNORED)
            weight[n] = 0;
    }
    return heaviest_class(class, weight, class_at(c, nearest_voxel(c, x), channel));
}

/* Whether at least half of the weight is that of voxels that are ignored, in all channels. */
static bool is_mostly_ignored(const interpolation *c, const position *x,
                              const int64_t voxel[CORNERS])
{
    double ignored = 0;

    for (int n = 0; n < CORNERS; n++) {
        double weight;
        corner_at(c, x->at, n, false, &weight);
        ignored += class_at(c, voxel[n], 0) == TARGET_IGNORED ? weight : 0;
    }
    return ignored >= 0.5;
}

/* Whether all neighbours have the label of the lowest one, in a case of one label channel. */
static bool is_uniform(const interpolation *c, const position *x)
{
    int64_t i = c->stride[0], j = c->stride[1];

    if (!x->inside || c->p->label.channels != 1)
        return false;
    const uint8_t *t = c->p->target + x->low;
    unsigned other = (t[0] ^ t[1]) | (t[0] ^ t[j]) | (t[0] ^ t[j + 1]);
    return (other | (t[0] ^ t[i]) | (t[0] ^ t[i + 1]) | (t[0] ^ t[i + j]) | (t[0] ^ t[i + j + 1]))
           == 0;
}

static void put_linear_label(const interpolation *c, const position *x, uint8_t *out)
{
    int64_t voxel[CORNERS];

    find_corners(c, x, voxel);
    if (c->p->label.channels > 1 && is_mostly_ignored(c, x, voxel)) {
        memset(out, TARGET_IGNORED, (size_t)c->p->label.channels);
        return;
    }
    for (int k = 0; k < c->p->label.channels; k++) {
        int found = has_one_class(c, voxel, k) ? class_at(c, voxel[0], k)
                                               : linear_class(c, x, voxel, k);
        out[k] = found == NO_CLASS ? c->outside : (uint8_t)found;
    }
}

static void put_nearest_label(const interpolation *c, const position *x, uint8_t *out)
{
    int64_t nearest = nearest_voxel(c, x);

    for (int k = 0; k < c->p->label.channels; k++)
        out[k] = nearest == OUTSIDE ? c->outside : (uint8_t)class_at(c, nearest, k);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The map of the first voxel of row (d, h). */
static void row_start(const interpolation *c, int64_t d, int64_t h, double start[3])
{
    const int64_t *e = c->sample->extent;

    for (int i = 0; i < 3; i++) {
        const double *row = c->sample->map[i];
        start[i] = c->centre[i] + row[3] + row[0] * ((double)d - 0.5 * (double)(e[0] - 1))
                   + row[1] * ((double)h - 0.5 * (double)(e[1] - 1))
                   - row[2] * 0.5 * (double)(e[2] - 1);
    }
}

static void interpolate_row(const interpolation *c, int64_t d, int64_t h, float *image,
                            uint8_t *label)
{
    const int64_t *e = c->sample->extent;
    const float *moved = c->sample->displacement;
    int64_t first = (d * e[1] + h) * e[2], voxels = e[0] * e[1] * e[2];
    double start[3];

    row_start(c, d, h, start);
    for (int64_t w = 0; w < e[2]; w++) {
        double at[3];
        position x;

        for (int i = 0; i < 3; i++)
            at[i] = start[i] + (double)w * c->sample->map[i][2]
                    + (moved != NULL ? (double)moved[i * voxels + first + w] : 0);
        position_find(c, at, &x);
        if (x.inside)
            put_inside(c, &x, image + w * c->p->image.channels);
        else
            put_at_border(c, &x, image + w * c->p->image.channels);
        if (label == NULL)
            continue;
        if (is_uniform(c, &x))
            label[w] = c->p->target[x.low];
        else if (c->sample->linear_labels)
            put_linear_label(c, &x, label + w * c->p->label.channels);
        else
            put_nearest_label(c, &x, label + w * c->p->label.channels);
    }
}

void patch_interpolate(const packed_case *p, const pons_sample *sample, const int64_t start[3],
                       loader_pad pad, int64_t first, int64_t count, float *image, uint8_t *label)
{
    const int64_t *e = sample->extent, *n = p->image.extent;
    interpolation c = { .p = p, .sample = sample, .repeat = (pad & LOADER_PAD_EDGE) != 0,
                        .outside = patch_extract_outside(pad),
                        .stride = { n[1] * n[2], n[2], 1 } };
    int64_t box[3];

    patch_extract_box(sample, box);
    for (int i = 0; i < 3; i++)
        c.centre[i] = (double)start[i] + 0.5 * (double)(box[i] - 1);
    for (int64_t d = first; d < first + count; d++)
        for (int64_t h = 0; h < e[1]; h++) {
            int64_t row = (d * e[1] + h) * e[2];
            interpolate_row(&c, d, h, image + row * p->image.channels,
                            label != NULL ? label + row * p->label.channels : NULL);
        }
}
