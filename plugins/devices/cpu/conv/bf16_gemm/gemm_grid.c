/*
 * gemm_grid.c - the grid of gemm_grid.h for a convolution, and addresses of its positions.
 */
#include "cpu/conv/bf16_gemm/gemm_grid.h"

#include "cpu/map/map_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

/* A kernel position k along one axis reads element s (p + shift) + phase of the input. */
static int reach(const pons_convolution *c, int axis, int k)
{
    return k * c->dilation[axis] - c->pad_low[axis];
}

static int phase_of(const pons_convolution *c, int axis, int k)
{
    int s = c->stride[axis], r = reach(c, axis, k) % s;
    return r < 0 ? r + s : r;
}

static int shift_of(const pons_convolution *c, int axis, int k)
{
    return (reach(c, axis, k) - phase_of(c, axis, k)) / c->stride[axis];
}

static int phase_extent(const pons_convolution *c, int axis, int x, int phase)
{
    return phase >= x ? 0 : ceil_div_int(x - phase, c->stride[axis]);
}

/* The smallest extent whose gap holds what every kernel position reaches over both ends. */
static int grid_extent(const pons_convolution *c, int axis, int kernel, int x, int y)
{
    int low = 0, inside = y, extent;

    for (int k = 0; k < kernel; k++) {
        low = max_int(low, -shift_of(c, axis, k));
        inside = max_int(inside, phase_extent(c, axis, x, phase_of(c, axis, k)));
    }
    extent = inside + low;
    for (int k = 0; k < kernel; k++)
        extent = max_int(extent, y + shift_of(c, axis, k));
    return extent;
}

gemm_view gemm_view_of(const pons_tensor *t, const int stride[3], const int phase[3])
{
    const int64_t *e = t->shape.extent;
    int64_t size = (t->type == PONS_BF16 ? 2 : 4) * e[4];
    int64_t step[3] = { e[2] * e[3] * size, e[3] * size, size };
    gemm_view v = { .image = e[1] * step[0] };

    for (int i = 0; i < 3; i++) {
        v.extent[i] = phase[i] >= e[1 + i] ? 0 : (int)ceil_div_i64(e[1 + i] - phase[i], stride[i]);
        v.step[i] = stride[i] * step[i];
        v.start += phase[i] * step[i];
    }
    return v;
}

/* The number of a phase, which is noted if no earlier kernel position has it. */
static int note_phase(gemm_grid *g, const pons_tensor *x, const pons_convolution *c,
                      const int phase[3])
{
    gemm_view v = gemm_view_of(x, c->stride, phase);

    for (int i = 0; i < g->phases; i++)
        if (g->phase[i].start == v.start &&
            memcmp(g->phase[i].extent, v.extent, sizeof v.extent) == 0)
            return i;
    g->phase[g->phases] = v;
    return g->phases++;
}

static void note_tap(gemm_grid *g, const pons_tensor *x, const pons_convolution *c, const int at[3])
{
    gemm_tap *t = g->tap + g->taps++;
    int phase[3];

    t->shift = 0;
    for (int i = 0; i < 3; i++) {
        phase[i] = phase_of(c, i, at[i]);
        t->shift = t->shift * g->extent[i] + shift_of(c, i, at[i]);
    }
    t->phase = note_phase(g, x, c, phase);
    g->low = max_i64(-t->shift, g->low);
    g->high = max_i64(t->shift, g->high);
}

pons_status gemm_grid_init(gemm_grid *g, const conv_problem *p, pons_error *err)
{
    const pons_convolution *c = p->attributes;
    const int *k = p->kernel;

    *g = (gemm_grid){ .cases = p->cases };
    g->tap = calloc((size_t)p->taps, sizeof *g->tap);
    g->phase = calloc((size_t)p->taps, sizeof *g->phase);
    if (g->tap == NULL || g->phase == NULL) {
        gemm_grid_clear(g);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    g->count = g->cases;
    for (int i = 0; i < 3; i++) {
        g->extent[i] = grid_extent(c, i, k[i], p->x.extent[i], p->y.extent[i]);
        g->count *= g->extent[i];
    }
    for (int d = 0; d < k[0]; d++)
        for (int h = 0; h < k[1]; h++)
            for (int v = 0; v < k[2]; v++)
                note_tap(g, p->x_tensor, c, (int[]){ d, h, v });
    g->output = gemm_view_of(p->y_tensor, (int[]){ 1, 1, 1 }, (int[]){ 0, 0, 0 });
    return PONS_OK;
}

void gemm_grid_clear(gemm_grid *g)
{
    free(g->tap);
    free(g->phase);
    g->tap = NULL;
    g->phase = NULL;
}

/* The begin of row number 'row' of the grid, or NULL where it lies in a gap. */
static const char *row_begin(const gemm_grid *g, const gemm_view *v, const void *tensor,
                             int64_t row)
{
    int64_t h = row % g->extent[1], plane = row / g->extent[1];
    int64_t d = plane % g->extent[0], image = plane / g->extent[0];

    if (h >= v->extent[1] || d >= v->extent[0] || image >= g->cases)
        return NULL;
    return (const char *)tensor + v->start + image * v->image + d * v->step[0] + h * v->step[1];
}

int64_t gemm_grid_run(const gemm_grid *g, const gemm_view *v, const void *tensor, int64_t at,
                      int64_t end, const char **from)
{
    int64_t row = at < 0 ? -1 : at / g->extent[2], w = at - row * g->extent[2];
    const char *begin = at < 0 ? NULL : row_begin(g, v, tensor, row);

    *from = NULL;
    if (at < 0)
        return min_i64(-at, end - at);
    if (begin == NULL || w >= v->extent[2])
        return min_i64(g->extent[2] - w, end - at);
    *from = begin + w * v->step[2];
    return min_i64(v->extent[2] - w, end - at);
}

void gemm_grid_positions(const gemm_grid *g, const gemm_view *v, const void *tensor,
                         const char *zero, int64_t first, int count, const char **to)
{
    const char *from;

    for (int i = 0; i < count;) {
        int64_t run = gemm_grid_run(g, v, tensor, first + i, first + count, &from);
        for (int k = 0; k < run; k++, i++)
            to[i] = from != NULL ? from + k * v->step[2] : zero;
    }
}
