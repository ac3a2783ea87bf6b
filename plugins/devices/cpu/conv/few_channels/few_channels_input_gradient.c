/*
 * few_channels_input_gradient.c - input gradients from many channels to few, and convolutions with
 * swapped sides.
 *
 * A row of y is multiplied by the weights of every kernel position along W. The products of a phase
 * of the stride are added. Where loops_upsample2.c does both, two rows of x are computed at a time.
 */
#include "cpu/conv/few_channels/few_channels_internal.h"

#include <string.h>

#include "base/integer.h"

/*
 * The position of y that the lowest kernel position k reads for position 'at' of x. Kernel position
 * k + stride reads the position before it.
 */
static int first_source(const few_channels_plan *n, int axis, int at, int *k)
{
    int shifted = at + n->pad[axis];

    *k = shifted % n->stride[axis];
    return shifted / n->stride[axis];
}

static int spread_taps(few_channels_task *w, int d, int h)
{
    const few_channels_plan *n = w->n;
    int kd, first, plane = first_source(n, 0, d, &kd), count = 0;
    int top = first_source(n, 1, h, &first);

    for (; kd < n->kernel[0]; kd += n->stride[0], plane--)
        for (int kh = first, row = top; kh < n->kernel[1]; kh += n->stride[1], row--) {
            if (plane < 0 || plane >= n->y.extent[0] || row < 0 || row >= n->y.extent[1])
                continue;
            w->row[count] = few_channels_buffered(w, plane, row);
            w->block[count++] = w->weight + (int64_t)(kd * n->kernel[1] + kh) * n->outs * n->inner;
        }
    return count;
}

/* x[q s + phase][i] = sum over kw of z[kw, i][q + (phase + pad - kw) / s]. */
static void gather_phases(const few_channels_plan *n, const float *z, float *rows)
{
    int s = n->stride[2], width = ceil_div_int(n->x.extent[2], s), c = n->x.channels;

    for (int phase = 0; phase < s; phase++) {
        int first, begin = first_source(n, 2, phase, &first);
        for (int i = 0; i < c; i++) {
            const float *from[FEW_CHANNELS_MARGIN];
            int count = 0, offset = begin;
            for (int kw = first; kw < n->kernel[2]; kw += s)
                from[count++] = z + (int64_t)(kw * c + i) * n->pitch + offset--;
            n->lanes->planar->add(rows + (int64_t)(phase * c + i) * n->pitch, width, count, from);
        }
    }
}

/* The lowest position of y that contributes to position 'at' of x, if there is one. */
static int lowest_source(const few_channels_plan *n, int axis, int at)
{
    return ceil_div_int(max_int(at + n->pad[axis] - n->kernel[axis] + 1, 0), n->stride[axis]);
}

static void buffer_y_begin(few_channels_task *w)
{
    const few_channels_plan *n = w->n;
    const int low[2] = { lowest_source(n, 0, w->first), lowest_source(n, 1, w->top) };

    few_channels_buffer_begin(w, &n->y, low, few_channels_fill_y);
}

/*
 * Buffer the rows of y up to the last that contributes to row h of plane d of x. A buffer without a
 * ring takes all rows of the task.
 */
static void buffer_y(few_channels_task *w, int d, int h)
{
    const few_channels_plan *n = w->n;

    d = n->ring ? d : w->last;
    h = n->ring ? h : w->bottom;
    few_channels_buffer_up_to(w, (d + n->pad[0]) / n->stride[0], (h + n->pad[1]) / n->stride[1]);
}

void few_channels_input_gradient(few_channels_task *w)
{
    const few_channels_plan *n = w->n;
    int s = n->stride[2];
    float *z = w->other + FEW_CHANNELS_MARGIN;
    float *rows = w->other + (int64_t)n->pitch * n->inner + 2 * FEW_CHANNELS_MARGIN;

    buffer_y_begin(w);
    memset(w->other, 0, (size_t)(n->pitch * n->inner + 2 * FEW_CHANNELS_MARGIN) * sizeof(float));
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            buffer_y(w, d, h);
            int taps = spread_taps(w, d, h);
            n->planar->spread(z, n->y.extent[2], n->pitch, n->inner, taps, w->row, n->y_pitch,
                              n->y.channels, w->block);
            gather_phases(n, z, rows);
            few_channels_row_join(w, &n->x, d, h, rows, ceil_div_int(n->x.extent[2], s),
                                  s * n->x.channels);
        }
}

/*
 * Find the rows of y that contribute to rows h and h + 1 of plane d of x, or to row h alone. The
 * order is: rows for h alone, rows for both, rows for h + 1 alone.
 */
static void find_up(few_channels_task *w, few_channels_two_taps *r, int d, int h, bool two)
{
    const few_channels_plan *n = w->n;
    int64_t size = (int64_t)n->outs * n->inner;
    int first, plane_of_first = first_source(n, 0, d, &first), count = 0, s = n->stride[1];
    int low = lowest_source(n, 1, h), high = (h + two + n->pad[1]) / s;
    /* -1: the first tap lies outside, above the first row. */
    int lowest = h + n->pad[1] < n->kernel[1] - 1 ? -1 : low;

    if (two && 2 % s == 0
        && few_channels_step_rows(w, r->x, r->end[2], d, lowest, high - lowest + 1, 2 / s))
        return;
    high = min_int(high, n->y.extent[1] - 1);
    for (int part = 0; part < 3; part++) {
        for (int kd = first, plane = plane_of_first; kd < n->kernel[0];
             kd += n->stride[0], plane--)
            for (int row = low; row <= high && plane >= 0 && plane < n->y.extent[0]; row++) {
                int kh = h + n->pad[1] - row * s;
                bool mine = kh >= 0 && kh < n->kernel[1];
                bool next = two && kh + 1 >= 0 && kh + 1 < n->kernel[1];
                const float *weight = w->weight + (int64_t)kd * n->kernel[1] * size;
                if ((mine || next) && part == (mine && next ? 1 : mine ? 0 : 2)) {
                    r->x[count] = few_channels_buffered(w, plane, row);
                    r->weight[0][count] = mine ? weight + kh * size : NULL;
                    r->weight[1][count++] = next ? weight + (kh + 1) * size : NULL;
                }
            }
        r->end[part] = count;
    }
}

/* Choose a row of y to prefetch: one that is deinterleaved soon, else memory in use. */
static void prefetch_next_row(const few_channels_task *w, few_channels_upsample2 *rows)
{
    enum { AHEAD = 3 };
    const few_channels_plan *n = w->n;
    bool soon = w->ready + AHEAD < n->y.extent[1] && rows->end[2] > 0;
    int64_t at = soon ? few_channels_row_at(&n->y, w->image, w->newest, w->ready + AHEAD) : 0;

    rows->next_row = soon ? (const char *)((const float *)w->in + at) : (const char *)w->other;
    rows->step = soon ? ceil_div_int((int)(n->y.row * (int64_t)sizeof(float)),
                                     rows->end[2] * n->outs) : 0;
}

void few_channels_input_gradient_upsample2(few_channels_task *w)
{
    const few_channels_plan *n = w->n;
    int c = n->x.channels, width = ceil_div_int(n->x.extent[2], 2);
    few_channels_two_taps r;
    few_channels_upsample2 rows = { .x = w->other, .width = width, .pitch = n->pitch, .y_pitch
        = n->y_pitch,
                                    .outs = n->y.channels, .y = r.x, .weight = { r.weight[0],
                                        r.weight[1] } };

    buffer_y_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h += 2) {
            bool two = h < w->bottom;
            buffer_y(w, d, h + two);
            find_up(w, &r, d, h, two);
            memcpy(rows.end, r.end, sizeof rows.end);
            prefetch_next_row(w, &rows);
            n->lanes->bf16x2->upsample2(&rows, c);
            for (int i = 0; i <= two; i++)
                few_channels_row_join(w, &n->x, d, h + i, w->other + i * 2 * (int64_t)c * n->pitch,
                                      width, 2 * c);
        }
}
