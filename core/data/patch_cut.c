/*
 * patch_cut.c - copy the voxels of a patch out of a packed case, through the sample's map.
 *
 * Flips and quarter turns are signed permutations of the axes: each patch axis walks along one axis
 * of the case, so three tables of offsets are all there is to compute. Other maps take eight
 * neighbours per voxel.
 */
#include <data/patch_cut.h>

#include <math.h>
#include <string.h>

#define OUTSIDE INT64_MIN

typedef struct cutter {
    const packed_case *p;
    const pons_sample *sample;
    const int64_t *start;
    loader_pad pad;
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

size_t patch_scratch_count(const int64_t extent[3])
{
    return (size_t)(2 * (extent[0] + extent[1] + extent[2]));
}

/* ---- signed permutations --------------------------------------------------------------------- */

/* at[t], nearest[t]: voxel offset along one axis of the case for place t of the patch axis. */
static void fill_offsets(const cutter *c, int i, int64_t count, bool back, int64_t *at,
                         int64_t *nearest)
{
    const int64_t *n = c->p->image.extent;
    int64_t stride = i == 0 ? n[1] * n[2] : i == 1 ? n[2] : 1;

    for (int64_t t = 0; t < count; t++) {
        int64_t x = c->start[i] + (back ? count - 1 - t : t);
        int64_t inside = x < 0 ? 0 : x >= n[i] ? n[i] - 1 : x;
        at[t] = x == inside ? x * stride : OUTSIDE;
        nearest[t] = inside * stride;
    }
}

static void copy_voxel(const cutter *c, int64_t from, int64_t to)
{
    int channels = c->p->image.channels;

    for (int k = 0; k < channels; k++)
        c->image[to * channels + k] = packed_value(c->p, from * channels + k);
}

static void pad_voxel(const cutter *c, int64_t nearest, int64_t to)
{
    int channels = c->p->image.channels;

    if (c->pad == LOADER_PAD_EDGE)
        copy_voxel(c, nearest, to);
    else
        memset(c->image + to * channels, 0, (size_t)channels * sizeof *c->image);
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

static void cut_exact(const cutter *c, const int axis[3], const bool back[3], int64_t *scratch)
{
    const int64_t *e = c->sample->extent;
    int64_t *at[3], *near[3], to = 0;

    for (int j = 0; j < 3; j++) {
        at[j] = scratch;
        near[j] = scratch + e[j];
        scratch += 2 * e[j];
    }
    for (int i = 0; i < 3; i++)
        fill_offsets(c, i, e[axis[i]], back[i], at[axis[i]], near[axis[i]]);
    for (int64_t d = 0; d < e[0]; d++) {
        for (int64_t h = 0; h < e[1]; h++) {
            bool out = at[0][d] == OUTSIDE || at[1][h] == OUTSIDE;
            int64_t base = out ? 0 : at[0][d] + at[1][h];
            int64_t base_near = near[0][d] + near[1][h];
            for (int64_t w = 0; w < e[2]; w++, to++) {
                bool outside = out || at[2][w] == OUTSIDE;
                if (outside)
                    pad_voxel(c, base_near + near[2][w], to);
                else
                    copy_voxel(c, base + at[2][w], to);
                put_label(c, outside ? OUTSIDE : base + at[2][w], to);
            }
        }
    }
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
            at[i] = (int64_t)low + up;
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
    int64_t to = 0;

    for (int64_t d = 0; d < e[0]; d++) {
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
                    nearest[i] = (int64_t)rint(x[i]);
                }
                blend_voxel(c, x, to);
                put_label(c, voxel_at(c, nearest, false), to);
            }
        }
    }
}

void patch_cut(const packed_case *p, const pons_sample *sample, const int64_t start[3],
               loader_pad pad, int64_t *scratch, float *image, uint8_t *label)
{
    cutter c = { p, sample, start, pad, image, p->target != NULL ? label : NULL };
    int axis[3];
    bool back[3];

    if (map_permutes(sample, axis, back))
        cut_exact(&c, axis, back, scratch);
    else
        cut_blended(&c);
}
