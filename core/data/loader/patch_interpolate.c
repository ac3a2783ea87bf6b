/*
 * patch_interpolate.c - sample the voxels of a patch between those of a packed case.
 *
 * The position of each voxel is the sample's map of its index plus its displacement. A row is cut
 * into blocks of LANES voxels. Positions, shares and sums of a block are computed in vectors;
 * neighbours are read one by one, without tests where all of the block's are in the case. The
 * arithmetic of a voxel is the same in every block and for every instruction set.
 */
#include "data/loader/patch_interpolate.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/avx2_clone.h"
#include "base/whole.h"
#include "data/loader/patch_extract.h"

#define OUTSIDE INT64_MIN

/* The class of what lies outside of the case. */
enum { NO_CLASS = -1, CORNERS = 8, LANES = 32 };

/* Planes from a voxel to the one that is prefetched, and voxels of a row between these. */
enum { PREFETCH_PLANES = 2, PREFETCH_STEP = 2 };

typedef struct interpolation {
    const packed_case *p;
    const pons_sample *sample;
    bool repeat;               /* outside of the case the nearest voxel; else zeros               */
    uint8_t outside;           /* label outside of the case                                       */
    double centre[3];          /* position in the volume of the patch's centre                    */
    int64_t stride[3];         /* voxels; 0 along each of the first two axes that has one voxel   */
    double end[3];             /* positions of [0, end) have all neighbours along the axis inside */
    int64_t ahead;             /* voxels of the case to the one that is prefetched                */
} interpolation;

/* Positions of up to LANES voxels of a row. */
typedef struct block {
    int count;
    bool inside;               /* all neighbours are in the case                                  */
    double at[3][LANES];       /* at most two voxels beyond the case                              */
    double low[3][LANES];      /* the lowest neighbour                                            */
    float share[3][LANES];
    int64_t from[LANES];       /* number of the lowest neighbour, if inside                       */
} block;

/* ---- positions ------------------------------------------------------------------------------- */

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

/* Positions along axis i of voxels w, w + 1, ... of a row, without displacements. */
AVX2_BODY void map_positions(block *b, int i, double start, double step, int64_t w)
{
    for (int n = 0; n < LANES; n++)
        b->at[i][n] = start + (double)(int)(w + n) * step;
}

/*
 * Positions far beyond the case are as good as two voxels beyond it, where all neighbours are
 * outside.
 */
AVX2_BODY void limit_positions(block *b, int i, double last)
{
    for (int n = 0; n < LANES; n++) {
        double at = b->at[i][n] > -2 ? b->at[i][n] : -2;

        b->at[i][n] = at < last + 2 ? at : last + 2;
    }
}

/* Add displacements along axis i. Returns whether all neighbours along it are in the case. */
AVX2_BODY bool displace_positions(block *b, int i, double end, const float *moved)
{
    float shift[LANES] = { 0 };
    int outside = 0;

    memcpy(shift, moved, (size_t)b->count * sizeof *shift);
    for (int n = 0; n < LANES; n++)
        b->at[i][n] += (double)shift[n];
    for (int n = 0; n < b->count; n++)
        outside |= !(b->at[i][n] >= 0) | !(b->at[i][n] < end);
    return outside == 0;
}

/* The first and the last of mapped positions have all others between them. */
static inline bool ends_inside(const block *b, int i, double end)
{
    double first = b->at[i][0], last = b->at[i][b->count - 1];

    return first >= 0 && first < end && last >= 0 && last < end;
}

/* The positions along axis i of voxels w, w + 1, ... of a row. */
AVX2_BODY void set_positions(const interpolation *c, block *b, int i, double start, int64_t w,
                             const float *moved)
{
    double last = (double)(c->p->image.extent[i] - 1);
    bool inside;

    map_positions(b, i, start, c->sample->map[i][2], w);
    inside = moved != NULL ? displace_positions(b, i, c->end[i], moved)
                           : ends_inside(b, i, c->end[i]);
    if (!inside || b->count < LANES)
        limit_positions(b, i, last);
    b->inside &= inside;
    for (int n = 0; n < LANES; n++) {
        b->low[i][n] = floor(b->at[i][n]);
        b->share[i][n] = (float)(b->at[i][n] - b->low[i][n]);
    }
}

/*
 * Numbers of the voxels at whole coordinates inside the case. Their sums are exact in double, and
 * 2^52 more has the number in its low bits.
 */
AVX2_BODY void number_voxels(const interpolation *c, double at[3][LANES], int64_t out[LANES])
{
    double i = (double)c->stride[0], j = (double)c->stride[1];

    for (int n = 0; n < LANES; n++) {
        double number = at[0][n] * i + at[1][n] * j + at[2][n] + 0x1p52;
        int64_t bits;

        memcpy(&bits, &number, sizeof bits);
        out[n] = bits & ((INT64_C(1) << 52) - 1);
    }
}

/* ---- images ---------------------------------------------------------------------------------- */

/* The value 'at' places behind value 'begin'. */
AVX2_BODY float value_at(const packed_case *p, int code_size, int64_t begin, int64_t at)
{
    if (code_size == 2)
        return p->table[((const uint16_t *)p->codes + begin)[at]];
    if (code_size == 1)
        return p->table[((const uint8_t *)p->codes + begin)[at]];
    return ((const float *)p->codes + begin)[at];
}

/*
 * Read one channel of all neighbours, k values apart along k. Corner 1 is the next one along k, 2
 * along j, 4 along i.
 */
AVX2_BODY void read_corners(const interpolation *c, const block *b, int code_size, int64_t k,
                            int channel, float value[CORNERS][LANES])
{
    const packed_case *p = c->p;
    int64_t j = c->stride[1] * k, i = c->stride[0] * k;

    for (int n = 0; n < b->count; n++) {
        int64_t at = b->from[n] * k;

        value[0][n] = value_at(p, code_size, channel, at);
        value[1][n] = value_at(p, code_size, channel + k, at);
        value[2][n] = value_at(p, code_size, channel + j, at);
        value[3][n] = value_at(p, code_size, channel + j + k, at);
        value[4][n] = value_at(p, code_size, channel + i, at);
        value[5][n] = value_at(p, code_size, channel + i + k, at);
        value[6][n] = value_at(p, code_size, channel + i + j, at);
        value[7][n] = value_at(p, code_size, channel + i + j + k, at);
    }
}

AVX2_BODY void read_inside(const interpolation *c, const block *b, int code_size, int channel,
                           float value[CORNERS][LANES])
{
    if (c->p->image.channels == 1)
        read_corners(c, b, code_size, 1, 0, value);
    else
        read_corners(c, b, code_size, c->p->image.channels, channel, value);
}

/* Offsets of the lower and the upper neighbours along each axis, of the nearest voxels inside. */
typedef struct neighbours {
    int64_t offset[3][2][LANES];
    bool inside[3][2][LANES];
} neighbours;

AVX2_BODY void find_neighbours(const interpolation *c, const block *b, neighbours *out)
{
    for (int i = 0; i < 3; i++)
        for (int up = 0; up < 2; up++)
            for (int n = 0; n < b->count; n++) {
                int64_t at = (int64_t)b->low[i][n] + up, last = c->p->image.extent[i] - 1;
                int64_t nearest = at < 0 ? 0 : at > last ? last : at;

                out->offset[i][up][n] = nearest * c->stride[i];
                out->inside[i][up][n] = nearest == at;
            }
}

static inline int64_t corner_at(const neighbours *x, int n, int corner, bool *inside)
{
    int i = corner >> 2 & 1, j = corner >> 1 & 1, k = corner & 1;

    *inside = x->inside[0][i][n] & x->inside[1][j][n] & x->inside[2][k][n];
    return x->offset[0][i][n] + x->offset[1][j][n] + x->offset[2][k][n];
}

static void read_at_border(const interpolation *c, const block *b, const neighbours *x, int channel,
                           float value[CORNERS][LANES])
{
    int channels = c->p->image.channels;

    for (int corner = 0; corner < CORNERS; corner++)
        for (int n = 0; n < b->count; n++) {
            bool inside;
            int64_t from = corner_at(x, n, corner, &inside);
            float v = packed_case_value(c->p, from * channels + channel);
            value[corner][n] = inside | c->repeat ? v : 0;
        }
}

AVX2_BODY float between(float a, float b, float share)
{
    return a + (b - a) * share;
}

AVX2_BODY void interpolate_values(const block *b, float value[CORNERS][LANES], int step,
                                  float *restrict out)
{
    float sum[LANES];

    for (int n = 0; n < LANES; n++) {
        float i = b->share[0][n], j = b->share[1][n], k = b->share[2][n];
        float low = between(between(value[0][n], value[1][n], k),
                            between(value[2][n], value[3][n], k), j);
        float high = between(between(value[4][n], value[5][n], k),
                             between(value[6][n], value[7][n], k), j);
        sum[n] = between(low, high, i);
    }
    for (int n = 0; n < b->count; n++)
        out[n * step] = sum[n];
}

/* Prefetch the voxels of a later block: no processor foresees the order of a turned patch. */
AVX2_BODY void prefetch_block(const interpolation *c, const block *b)
{
    const packed_case *p = c->p;
    uintptr_t codes = (uintptr_t)p->codes, target = (uintptr_t)p->target;
    int64_t size = (int64_t)p->code_size * p->image.channels;

    for (int n = 0; n < LANES; n += PREFETCH_STEP) {
        int64_t voxel = b->from[n] + c->ahead;

        __builtin_prefetch((const void *)(codes + (uintptr_t)(voxel * size)));
        __builtin_prefetch((const void *)(target + (uintptr_t)(voxel * p->label.channels)));
    }
}

AVX2_BODY void put_image(const interpolation *c, const block *b, float *out)
{
    float value[CORNERS][LANES];
    neighbours x;

    if (!b->inside)
        find_neighbours(c, b, &x);
    for (int corner = 0; corner < CORNERS; corner++)
        for (int n = b->count; n < LANES; n++)
            value[corner][n] = 0;
    for (int channel = 0; channel < c->p->image.channels; channel++) {
        if (!b->inside)
            read_at_border(c, b, &x, channel, value);
        else if (c->p->code_size == 2)
            read_inside(c, b, 2, channel, value);
        else if (c->p->code_size == 1)
            read_inside(c, b, 1, channel, value);
        else
            read_inside(c, b, 4, channel, value);
        interpolate_values(b, value, c->p->image.channels, out + channel);
    }
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* The voxel nearest to a position, the even one of two, or OUTSIDE. */
AVX2_BODY int64_t nearest_voxel(const interpolation *c, const block *b, int n)
{
    int64_t voxel = 0;

    for (int i = 0; i < 3; i++) {
        int64_t at = (int64_t)rint(b->at[i][n]);
        if (at < 0 || at >= c->p->image.extent[i])
            return OUTSIDE;
        voxel += at * c->stride[i];
    }
    return voxel;
}

/* Padding that nothing counts is one class with ignored voxels. */
static int class_at(const interpolation *c, int64_t voxel, int channel)
{
    if (voxel == OUTSIDE)
        return c->outside == TARGET_IGNORED ? TARGET_IGNORED : NO_CLASS;
    return c->p->target[voxel * c->p->label.channels + channel];
}

static bool is_first(const int class[CORNERS], int corner)
{
    for (int n = 0; n < corner; n++)
        if (class[n] == class[corner])
            return false;
    return true;
}

/* The class with the largest sum of weights. */
static int heaviest_class(const int class[CORNERS], const double weight[CORNERS], int nearest)
{
    double largest = 0;
    int found = nearest;

    for (int n = 0; n < CORNERS; n++) {
        double sum = 0;
        if (!is_first(class, n))
            continue;
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

static void set_weights(const block *b, int n, double weight[CORNERS])
{
    double share[3];

    for (int i = 0; i < 3; i++)
        share[i] = b->at[i][n] - b->low[i][n];
    for (int corner = 0; corner < CORNERS; corner++) {
        weight[corner] = corner & 4 ? share[0] : 1 - share[0];
        weight[corner] *= corner & 2 ? share[1] : 1 - share[1];
        weight[corner] *= corner & 1 ? share[2] : 1 - share[2];
    }
}

static int linear_class(const interpolation *c, const block *b, int n,
                        const int64_t voxel[CORNERS], int channel)
{
    double weight[CORNERS];
    int class[CORNERS], different = 0;

    for (int corner = 0; corner < CORNERS; corner++) {
        class[corner] = class_at(c, voxel[corner], channel);
        different |= class[corner] ^ class[0];
    }
    if (different == 0)
        return class[0];
    set_weights(b, n, weight);
    for (int corner = 0; corner < CORNERS && c->p->label.channels > 1; corner++)
        weight[corner] = class[corner] == TARGET_IGNORED ? 0 : weight[corner];
    return heaviest_class(class, weight, class_at(c, nearest_voxel(c, b, n), channel));
}

/* Whether at least half of the weight is that of voxels that are ignored, in all channels. */
static bool is_mostly_ignored(const interpolation *c, const block *b, int n,
                              const int64_t voxel[CORNERS])
{
    double weight[CORNERS], ignored = 0;

    set_weights(b, n, weight);
    for (int corner = 0; corner < CORNERS; corner++)
        ignored += class_at(c, voxel[corner], 0) == TARGET_IGNORED ? weight[corner] : 0;
    return ignored >= 0.5;
}

static void put_linear_label(const interpolation *c, const block *b, const neighbours *x, int n,
                             uint8_t *out)
{
    int64_t voxel[CORNERS];

    for (int corner = 0; corner < CORNERS; corner++) {
        bool inside;
        int64_t from = corner_at(x, n, corner, &inside);
        voxel[corner] = inside ? from : OUTSIDE;
    }
    if (c->p->label.channels > 1 && is_mostly_ignored(c, b, n, voxel)) {
        memset(out, TARGET_IGNORED, (size_t)c->p->label.channels);
        return;
    }
    for (int k = 0; k < c->p->label.channels; k++) {
        int found = linear_class(c, b, n, voxel, k);
        out[k] = found == NO_CLASS ? c->outside : (uint8_t)found;
    }
}

static uint16_t pair_at(const uint8_t *at)
{
    uint16_t pair;

    memcpy(&pair, at, sizeof pair);
    return pair;
}

/*
 * Write the labels whose neighbours are of one class, in a block with all of them in the case and
 * with one label channel. Returns the voxels that are left.
 */
AVX2_BODY int put_uniform_labels(const interpolation *c, const block *b, int left[LANES],
                                 uint8_t *out)
{
    int64_t i = c->stride[0], j = c->stride[1];
    int count = 0;

    for (int n = 0; n < b->count; n++) {
        const uint8_t *t = c->p->target + b->from[n];
        unsigned one = t[0] * 0x101u;

        out[n] = t[0];
        left[count] = n;
        count += ((pair_at(t) ^ one) | (pair_at(t + j) ^ one) | (pair_at(t + i) ^ one)
                  | (pair_at(t + i + j) ^ one)) != 0;
    }
    return count;
}

AVX2_BODY void put_linear_labels(const interpolation *c, const block *b, uint8_t *out)
{
    int left[LANES], count = b->count;
    neighbours x;

    if (b->inside && c->p->label.channels == 1)
        count = put_uniform_labels(c, b, left, out);
    else
        for (int n = 0; n < count; n++)
            left[n] = n;
    if (count == 0)
        return;
    find_neighbours(c, b, &x);
    for (int n = 0; n < count; n++)
        put_linear_label(c, b, &x, left[n], out + left[n] * c->p->label.channels);
}

/* Nearest labels of a block where all neighbours are in the case. */
AVX2_BODY void put_nearest_inside(const interpolation *c, const block *b, uint8_t *out)
{
    const uint8_t *target = c->p->target;
    int channels = c->p->label.channels;
    double nearest[3][LANES];
    int64_t from[LANES];

    for (int i = 0; i < 3; i++)
        for (int n = 0; n < LANES; n++)
            nearest[i][n] = rint(b->at[i][n]);
    number_voxels(c, nearest, from);
    for (int n = 0; n < b->count; n++)
        for (int k = 0; k < channels; k++)
            out[n * channels + k] = target[from[n] * channels + k];
}

AVX2_BODY void put_nearest_labels(const interpolation *c, const block *b, uint8_t *out)
{
    int channels = c->p->label.channels;

    if (b->inside) {
        put_nearest_inside(c, b, out);
        return;
    }
    for (int n = 0; n < b->count; n++) {
        int64_t voxel = nearest_voxel(c, b, n);

        for (int k = 0; k < channels; k++)
            out[n * channels + k] = voxel == OUTSIDE ? c->outside
                                    : c->p->target[voxel * channels + k];
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

AVX2_BODY void interpolate_row(const interpolation *c, int64_t d, int64_t h, float *image,
                               uint8_t *label)
{
    const int64_t *e = c->sample->extent;
    const float *moved = c->sample->displacement;
    int64_t first = (d * e[1] + h) * e[2], voxels = e[0] * e[1] * e[2];
    double start[3];
    block b;

    row_start(c, d, h, start);
    for (int64_t w = 0; w < e[2]; w += LANES) {
        b.count = e[2] - w < LANES ? (int)(e[2] - w) : LANES;
        b.inside = true;
        for (int i = 0; i < 3; i++)
            set_positions(c, &b, i, start[i], w,
                          moved != NULL ? moved + i * voxels + first + w : NULL);
        number_voxels(c, b.low, b.from);
        if (b.inside)
            prefetch_block(c, &b);
        put_image(c, &b, image + w * c->p->image.channels);
        if (label == NULL)
            continue;
        if (c->sample->linear_labels)
            put_linear_labels(c, &b, label + w * c->p->label.channels);
        else
            put_nearest_labels(c, &b, label + w * c->p->label.channels);
    }
}

typedef void interpolate(const interpolation *c, int64_t d, int64_t h, float *image,
                         uint8_t *label);

static void interpolate_plain(const interpolation *c, int64_t d, int64_t h, float *image,
                              uint8_t *label)
{
    interpolate_row(c, d, h, image, label);
}

AVX2_CLONE void interpolate_avx2(const interpolation *c, int64_t d, int64_t h, float *image,
                                 uint8_t *label)
{
    interpolate_row(c, d, h, image, label);
}

/*
 * The end of the positions whose neighbours along an axis are in the case. A picture has one voxel
 * along one of the first two axes. This voxel is its own upper neighbour, which has weight 0.
 */
static double inside_end(int axis, int64_t extent)
{
    return extent > 1 || axis == 2 ? (double)(extent - 1) : DBL_MIN;
}

static int64_t voxels_ahead(const interpolation *c)
{
    int64_t ahead = 0;

    for (int i = 0; i < 3; i++)
        ahead += whole_within(rint(PREFETCH_PLANES * c->sample->map[i][0]), -1000, 1000)
                 * c->stride[i];
    return ahead;
}

void patch_interpolate(const packed_case *p, const pons_sample *sample, const int64_t start[3],
                       loader_pad pad, int64_t first, int64_t count, float *image, uint8_t *label)
{
    const int64_t *e = sample->extent, *n = p->image.extent;
    interpolation c = { .p = p, .sample = sample, .repeat = (pad & LOADER_PAD_EDGE) != 0,
                        .outside = patch_extract_outside(pad),
                        .stride = { n[0] > 1 ? n[1] * n[2] : 0, n[1] > 1 ? n[2] : 0, 1 } };
    interpolate *row_function = AVX2_CHOOSE(interpolate_avx2, interpolate_plain);
    int64_t box[3];

    patch_extract_box(sample, box);
    for (int i = 0; i < 3; i++) {
        c.end[i] = inside_end(i, n[i]);
        c.centre[i] = (double)start[i] + 0.5 * (double)(box[i] - 1);
    }
    c.ahead = voxels_ahead(&c);
    for (int64_t d = first; d < first + count; d++)
        for (int64_t h = 0; h < e[1]; h++) {
            int64_t row = (d * e[1] + h) * e[2];
            row_function(&c, d, h, image + row * p->image.channels,
                         label != NULL ? label + row * p->label.channels : NULL);
        }
}
