/*
 * window_attention.c - attention within windows as reshapes, transposes and matrix products.
 */
#include "window_attention.h"

#include <math.h>

/* The windows of one feature map. Values per axis are in the order D, H, W. */
typedef struct windows {
    int64_t n, channels;
    int64_t extent[3], padded[3];
    int64_t size[3], shift[3], count[3];
    int64_t all, voxels;               /* windows of the batch, voxels of one window              */
} windows;

static windows windows_of(const window_attention *a, pons_shape x)
{
    windows w = { .n = x.extent[0], .channels = x.extent[4], .all = x.extent[0], .voxels = 1 };

    for (int i = 0; i < 3; i++) {
        bool one = x.extent[1 + i] <= a->window[i];

        w.extent[i] = x.extent[1 + i];
        w.size[i] = one ? w.extent[i] : a->window[i];
        w.shift[i] = one || !a->shifted ? 0 : a->window[i] / 2;
        w.count[i] = (w.extent[i] + w.size[i] - 1) / w.size[i];
        w.padded[i] = w.count[i] * w.size[i];
        w.all *= w.count[i];
        w.voxels *= w.size[i];
    }
    return w;
}

static bool is_shifted(const windows *w)
{
    return w->shift[0] > 0 || w->shift[1] > 0 || w->shift[2] > 0;
}

#define SHAPE(...) pons_shape_make((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),   \
                                   (int64_t[]){ __VA_ARGS__ })

static pons_node *exchange(pons_graph *g, pons_node *x, int a, int b)
{
    int order[PONS_RANK_MAX] = { 0, 1, 2, 3, 4, 5 };

    order[a] = b;
    order[b] = a;
    return pons_transpose(g, x, order);
}

/* 'extent' elements of x along 'axis', from 'start' on. */
static pons_node *slice(pons_graph *g, pons_node *x, int axis, int64_t start, int64_t extent)
{
    int64_t first[PONS_RANK_MAX] = { 0 };
    pons_shape shape = pons_shape_of(x);

    first[axis] = start;
    shape.extent[axis] = extent;
    return pons_crop(g, x, first, shape.extent, NULL);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* [N, padded, C] -> [windows, voxels, C]. Each transpose moves whole rows. */
static pons_node *partition(pons_graph *g, const windows *w, pons_node *x)
{
    const int64_t *count = w->count, *size = w->size, channels = pons_channels_of(x);

    x = pons_reshape(g, x, SHAPE(w->n * count[0], size[0], count[1], size[1],
                                 w->padded[2] * channels));
    x = pons_reshape(g, exchange(g, x, 1, 2), SHAPE(w->n * count[0] * count[1], size[0] * size[1],
                                                    count[2], size[2] * channels));
    return pons_reshape(g, exchange(g, x, 1, 2), SHAPE(w->all, w->voxels, channels));
}

/* The inverse of partition. */
static pons_node *join(pons_graph *g, const windows *w, pons_node *x)
{
    const int64_t *count = w->count, *size = w->size, channels = w->channels;

    x = pons_reshape(g, x, SHAPE(w->n * count[0] * count[1], count[2], size[0] * size[1],
                                 size[2] * channels));
    x = pons_reshape(g, exchange(g, x, 1, 2), SHAPE(w->n * count[0], count[1], size[0], size[1],
                                                    w->padded[2] * channels));
    return pons_reshape(g, exchange(g, x, 1, 2),
                        SHAPE(w->n, w->padded[0], w->padded[1], w->padded[2], channels));
}

/* Move all voxels by -shift along an axis; those that leave come in at the other end. */
static pons_node *roll(pons_graph *g, pons_node *x, int axis, int64_t shift)
{
    int64_t extent = pons_shape_of(x).extent[axis];
    pons_node *part[] = { slice(g, x, axis, shift, extent - shift), slice(g, x, axis, 0, shift) };

    return pons_concatenate(g, 2, part, axis);
}

static pons_node *to_windows(pons_graph *g, const windows *w, pons_node *x)
{
    int64_t none[5] = { 0 }, high[5] = { 0 };

    for (int i = 0; i < 3; i++)
        high[1 + i] = w->padded[i] - w->extent[i];
    x = pons_pad(g, x, PONS_PAD_ZERO, none, high);
    for (int i = 0; i < 3; i++)
        if (w->shift[i] > 0)
            x = roll(g, x, 1 + i, w->shift[i]);
    return partition(g, w, x);
}

static pons_node *from_windows(pons_graph *g, const windows *w, pons_node *x)
{
    x = join(g, w, x);
    for (int i = 0; i < 3; i++)
        if (w->shift[i] > 0)
            x = roll(g, x, 1 + i, w->padded[i] - w->shift[i]);
    return pons_crop(g, x, (int64_t[5]){ 0 }, SHAPE(w->n, w->extent[0], w->extent[1], w->extent[2],
                                                    w->channels).extent, NULL);
}

/* ---- mask ------------------------------------------------------------------------------------ */

/*
 * The region of each voxel, [windows, voxels]. The last window of a shifted axis has two regions.
 * The second begins 'shift' voxels before its end; roll puts the map's other end there.
 */
static pons_node *regions(pons_graph *g, const windows *w)
{
    pons_node *all = pons_scalar(g, 0);

    for (int i = 0; i < 3; i++) {
        pons_node *at = pons_iota(g, 5, 1 + i, w->padded[i]);
        double last = (double)(w->padded[i] - w->size[i]);
        double wrapped = (double)(w->padded[i] - w->shift[i]);

        if (w->shift[i] > 0)
            all = pons_add(g, pons_scale(g, all, 3),
                           pons_add(g, pons_greater_equal(g, at, pons_scalar(g, last)),
                                    pons_greater_equal(g, at, pons_scalar(g, wrapped))));
    }
    all = pons_broadcast(g, all, SHAPE(w->n, w->padded[0], w->padded[1], w->padded[2], 1));
    return partition(g, w, all);
}

/* -100 between voxels of different regions: [windows, 1, voxels, voxels]. */
static pons_node *add_mask(pons_graph *g, const windows *w, pons_node *x)
{
    pons_node *region = regions(g, w);
    pons_node *row = pons_reshape(g, region, SHAPE(w->all, 1, w->voxels, 1));
    pons_node *column = pons_reshape(g, region, SHAPE(w->all, 1, 1, w->voxels));

    return pons_add(g, x, pons_select(g, pons_equal(g, row, column), pons_scalar(g, 0),
                                      pons_scalar(g, -100)));
}

/* ---- bias ------------------------------------------------------------------------------------ */

/*
 * y[a, i, j, r] = x[a, i - j + n - 1, r], from [A, 2 n - 1, R] to [A, n, n, R]: the table of
 * distances as a Toeplitz matrix. Rows of length 2 n, read as rows of length 2 n - 1, are each one
 * element further than the last. The gradient is a sum in a fixed order, without a scatter.
 */
static pons_node *spread_distances(pons_graph *g, pons_node *x, int64_t before, int64_t n,
                                   int64_t after)
{
    const int64_t none[] = { 0, 0, 0 }, one[] = { 0, 1, 0 };

    x = pons_flip(g, pons_reshape(g, x, SHAPE(before, 2 * n - 1, after)), PONS_AXIS(1));
    x = pons_reshape(g, pons_pad(g, x, PONS_PAD_ZERO, none, one), SHAPE(before, 1, 2 * n, after));
    x = pons_broadcast(g, x, SHAPE(before, n, 2 * n, after));
    x = slice(g, pons_reshape(g, x, SHAPE(before, 2 * n * n, after)), 1, 0, n * (2 * n - 1));
    return slice(g, pons_reshape(g, x, SHAPE(before, n, 2 * n - 1, after)), 2, n - 1, n);
}

/*
 * The bias [heads, voxels, voxels] of two voxels of a window. In a window shorter than the table's,
 * voxels keep the numbers that they have in the flattened window of the table, as in MONAI.
 */
static pons_node *position_bias(pons_graph *g, const char *name, const window_attention *a,
                                int64_t voxels)
{
    int64_t d = a->window[0], h = a->window[1], v = a->window[2], plane = h * v, heads = a->heads;
    int64_t rows = (2 * d - 1) * (2 * h - 1) * (2 * v - 1);
    pons_node *x = pons_parameter_leaf(g, pons_name(g, "%s.relative_position_bias_table", name),
                                       PONS_ROLE_BIAS, SHAPE(rows, heads),
                                       (pons_init){ PONS_INIT_NORMAL, 0.02 });

    x = spread_distances(g, x, (2 * d - 1) * (2 * h - 1), v, heads);
    x = spread_distances(g, x, 2 * d - 1, h, v * v * heads);
    x = pons_reshape(g, x, SHAPE(2 * d - 1, h, h, v, v, heads));
    x = spread_distances(g, exchange(g, x, 2, 3), 1, d, plane * plane * heads);
    x = pons_reshape(g, x, SHAPE(d, d, plane, plane, heads));
    x = pons_reshape(g, pons_transpose(g, x, (int[]){ 4, 0, 2, 1, 3 }),
                     SHAPE(heads, d * plane, d * plane));
    return slice(g, slice(g, x, 1, 0, voxels), 2, 0, voxels);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* A third of NAME.qkv, from x [rows, C] to heads: [windows, heads, voxels, C / heads]. */
static pons_node *third(pons_graph *g, const char *name, const window_attention *a,
                        const windows *w, int part, pons_node *x)
{
    int64_t c = w->channels;
    const pons_init init = { PONS_INIT_UNIFORM, 1 / sqrt((double)c) };
    pons_node *weight = pons_parameter_leaf(g, pons_name(g, "%s.qkv.weight", name),
                                            PONS_ROLE_WEIGHT, SHAPE(3 * c, c), init);
    pons_node *bias = a->qkv_bias ? pons_parameter_leaf(g, pons_name(g, "%s.qkv.bias", name),
                                                        PONS_ROLE_BIAS, SHAPE(3 * c), init) : NULL;

    x = pons_matmul(g, x, slice(g, weight, 0, part * c, c), false, true);
    if (bias != NULL)
        x = pons_add(g, x, slice(g, bias, 0, part * c, c));
    return exchange(g, pons_reshape(g, x, SHAPE(w->all, w->voxels, a->heads, c / a->heads)), 1, 2);
}

pons_node *attend_in_windows(pons_graph *g, const char *name, const window_attention *a,
                             pons_node *x)
{
    windows w = windows_of(a, pons_shape_of(x));
    pons_node *q, *k, *v;

    if (pons_shape_of(x).rank != 5)
        return x;
    x = pons_reshape(g, to_windows(g, &w, x), SHAPE(w.all * w.voxels, w.channels));
    q = third(g, name, a, &w, 0, x);
    k = third(g, name, a, &w, 1, x);
    v = third(g, name, a, &w, 2, x);
    q = pons_scale(g, q, 1 / sqrt((double)w.channels / (double)a->heads));
    x = pons_add(g, pons_matmul(g, q, k, false, true), position_bias(g, name, a, w.voxels));
    if (is_shifted(&w))
        x = add_mask(g, &w, x);
    x = pons_dropout(g, pons_softmax(g, x, 3), a->attention_drop,
                     pons_name(g, "%s.attn_drop", name));
    x = exchange(g, pons_matmul(g, x, v, false, false), 1, 2);
    x = pons_reshape(g, x, SHAPE(w.all, w.voxels, w.channels));
    x = pons_layer_linear(g, pons_name(g, "%s.proj", name), w.channels, x);
    x = pons_dropout(g, x, a->projection_drop, pons_name(g, "%s.proj_drop", name));
    return from_windows(g, &w, x);
}
