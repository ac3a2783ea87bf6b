/*
 * nnunet_resample.c - resample a case as nnU-Net does.
 *
 * Images are interpolated by cubic splines and then limited to the values that they had, since
 * splines overshoot. If slices are far apart, each slice is resized by itself, and the new slices
 * are copies of the nearest ones. A label is the class with the largest linear interpolation of its
 * own mask.
 */
#include "nnunet_resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- images ---------------------------------------------------------------------------------- */

/*
 * Limits of each group of values: the values of a channel, with a separate axis those of a channel
 * in one slice.
 */
typedef struct value_limits {
    int64_t extent[3];
    int channels, axis;
    float *low, *high;        /* [slices][channels] */
} value_limits;

static int64_t limits_group(const value_limits *l, int64_t i, int64_t j, int64_t k)
{
    int64_t at[3] = { i, j, k };

    return l->axis < 0 ? 0 : at[l->axis] * l->channels;
}

static void limits_add_row(const value_limits *l, int64_t i, int64_t j, const float *x)
{
    for (int64_t k = 0; k < l->extent[2]; k++) {
        int64_t group = limits_group(l, i, j, k);

        for (int c = 0; c < l->channels; c++, x++) {
            l->low[group + c] = *x < l->low[group + c] ? *x : l->low[group + c];
            l->high[group + c] = *x > l->high[group + c] ? *x : l->high[group + c];
        }
    }
}

static bool limits_init(value_limits *l, const pons_volume *v, int axis)
{
    int64_t count = (axis < 0 ? 1 : v->extent[axis]) * v->channels;
    const float *x = v->voxels;

    memcpy(l->extent, v->extent, sizeof l->extent);
    l->channels = v->channels;
    l->axis = axis;
    l->low = malloc((size_t)count * sizeof *l->low);
    l->high = malloc((size_t)count * sizeof *l->high);
    if (!l->low || !l->high)
        return false;
    for (int64_t n = 0; n < count; n++) {
        l->low[n] = INFINITY;
        l->high[n] = -INFINITY;
    }
    for (int64_t i = 0; i < v->extent[0]; i++)
        for (int64_t j = 0; j < v->extent[1]; j++, x += v->extent[2] * v->channels)
            limits_add_row(l, i, j, x);
    return true;
}

static void limits_clear(value_limits *l)
{
    free(l->low);
    free(l->high);
}

typedef struct limiting {
    const value_limits *limits;
    pons_volume *v;
} limiting;

static void limit_planes(void *context, int64_t first, int64_t end)
{
    const limiting *m = context;
    const value_limits *l = m->limits;
    pons_volume *v = m->v;
    float *x = (float *)v->voxels + first * v->extent[1] * v->extent[2] * v->channels;

    for (int64_t i = first; i < end; i++)
        for (int64_t j = 0; j < v->extent[1]; j++)
            for (int64_t k = 0; k < v->extent[2]; k++) {
                int64_t group = limits_group(l, i, j, k);

                for (int c = 0; c < l->channels; c++, x++)
                    *x = fminf(fmaxf(*x, l->low[group + c]), l->high[group + c]);
            }
}

/*
 * Splines change the values of an axis whose extent stays only by rounding, so that axis is left
 * out.
 */
static pons_status resample_image(pons_volume *v, const int64_t extent[3],
                                  const nnunet_modes *modes, pons_error *err)
{
    axis_mode mode[3] = { modes->within, modes->within, modes->within };
    int64_t slices[3] = { extent[0], extent[1], extent[2] };
    value_limits limits = { .low = NULL };
    limiting m = { &limits, v };

    if (modes->separate_axis >= 0)
        slices[modes->separate_axis] = v->extent[modes->separate_axis];
    if (!limits_init(&limits, v, modes->separate_axis)) {
        limits_clear(&limits);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    if (image_resize(v, slices, mode, err) == PONS_OK)
        pons_parallel_for(v->extent[0], 1, limit_planes, &m);
    limits_clear(&limits);
    if (err->status != PONS_OK || modes->separate_axis < 0)
        return err->status;
    mode[modes->separate_axis] = modes->across;
    return image_resize(v, extent, mode, err);
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* A position along an axis between two voxels, and the nearest voxel. */
typedef struct label_position {
    int64_t voxel[2], near;
    double weight[2];
} label_position;

typedef struct label_vote {
    const pons_volume *from;
    pons_volume *to;
    const label_position *at[3];
} label_vote;

static label_position *positions_new(int64_t old, int64_t count, bool nearest)
{
    label_position *p = malloc((size_t)count * sizeof *p);

    for (int64_t i = 0; p != NULL && i < count; i++) {
        double ratio = (double)old / (double)count, at = ((double)i + 0.5) * ratio - 0.5;
        double low = floor(at);

        p[i].near = axis_nearest(AXIS_NEAREST_EXACT, i, old, count);
        for (int n = 0; n < 2; n++) {
            double voxel = fmin(fmax(low + n, 0), (double)old - 1);

            p[i].voxel[n] = nearest ? p[i].near : (int64_t)voxel;
        }
        p[i].weight[0] = nearest ? 1 : 1 - (at - low);
        p[i].weight[1] = 1 - p[i].weight[0];
    }
    return p;
}

/* 255 is no class, and comes before class 0, as -1 does in nnU-Net. */
static bool is_smaller(uint8_t a, uint8_t b)
{
    return (uint8_t)(a + 1) < (uint8_t)(b + 1);
}

/*
 * The class with the largest sum of weights. Of equal sums the nearest voxel's class wins, else the
 * smallest class.
 */
static uint8_t vote(const uint8_t value[8], const double weight[8], uint8_t nearest)
{
    double best = -1;
    uint8_t winner = 0;

    for (int n = 0; n < 8; n++) {
        double sum = 0;

        for (int other = 0; other < 8; other++)
            sum += value[other] == value[n] ? weight[other] : 0;
        if (sum > best || (sum == best && winner != nearest
                           && (value[n] == nearest || is_smaller(value[n], winner)))) {
            best = sum;
            winner = value[n];
        }
    }
    return winner;
}

static void vote_row(const label_vote *r, const label_position *i, const label_position *j,
                     uint8_t *to)
{
    const pons_volume *v = r->from;
    const uint8_t *voxels = v->voxels;
    int channels = v->channels;

    for (int64_t k = 0; k < r->to->extent[2]; k++)
        for (int c = 0; c < channels; c++) {
            const label_position *p = &r->at[2][k];
            double weight[8];
            uint8_t value[8];
            bool same = true;

            for (int n = 0; n < 8; n++) {
                int64_t row = i->voxel[n >> 2] * v->extent[1] + j->voxel[n >> 1 & 1];

                value[n] = voxels[(row * v->extent[2] + p->voxel[n & 1]) * channels + c];
                weight[n] = i->weight[n >> 2] * j->weight[n >> 1 & 1] * p->weight[n & 1];
                same = same && value[n] == value[0];
            }
            if (same)
                *to++ = value[0];
            else
                *to++ = vote(value, weight,
                             voxels[((i->near * v->extent[1] + j->near) * v->extent[2] + p->near) *
                                        channels + c]);
        }
}

static void vote_planes(void *context, int64_t first, int64_t end)
{
    const label_vote *r = context;
    int64_t row = r->to->extent[2] * r->to->channels;
    uint8_t *to = (uint8_t *)r->to->voxels + first * r->to->extent[1] * row;

    for (int64_t i = first; i < end; i++)
        for (int64_t j = 0; j < r->to->extent[1]; j++, to += row)
            vote_row(r, &r->at[0][i], &r->at[1][j], to);
}

static pons_status resample_label(pons_volume *v, const int64_t extent[3], int separate_axis,
                                  pons_error *err)
{
    label_position *at[3];
    pons_volume out = { .voxels = NULL };
    label_vote r = { .from = v, .to = &out };

    for (int a = 0; a < 3; a++)
        r.at[a] = at[a] = positions_new(v->extent[a], extent[a], a == separate_axis);
    if (!at[0] || !at[1] || !at[2])
        pons_fail(err, PONS_DEVICE, "out of memory");
    else if (pons_volume_init(&out, v->type, v->channels, extent, err) == PONS_OK) {
        pons_parallel_for(extent[0], 1, vote_planes, &r);
        free(v->voxels);
        v->voxels = out.voxels;
        resize_position(v, extent);
    }
    for (int a = 0; a < 3; a++)
        free(at[a]);
    return err->status;
}

pons_status nnunet_resample(pons_case *c, const int64_t extent[3], const nnunet_modes *modes,
                            pons_error *err)
{
    if (!memcmp(c->image.extent, extent, sizeof c->image.extent))
        return PONS_OK;
    if (resample_image(&c->image, extent, modes, err) != PONS_OK
        || (c->label.voxels
            && resample_label(&c->label, extent, modes->separate_axis, err) != PONS_OK)
        || (c->valid.voxels
            && resample_label(&c->valid, extent, modes->separate_axis, err) != PONS_OK))
        return err->status;
    return PONS_OK;
}
