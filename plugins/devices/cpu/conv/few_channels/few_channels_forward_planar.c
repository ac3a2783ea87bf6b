/*
 * few_channels_forward_planar.c - runs to few channels. Two output rows are computed at a time,
 * because both read most of their rows. Rows are split by channels first, or read in the tensor.
 */
#include "cpu/conv/few_channels/few_channels_internal.h"

#include <string.h>

#include "base/integer.h"

/*
 * Taps whose rows of x are numbers low .. high - 1 of those that output row h reads, or the row
 * behind it; 'mine' and 'next' say whether they are taps of row h and of row h + 1.
 */
static int two_rows_taps(const few_channels_task *w, int d, int h, int low, int high, bool mine,
                         bool next, const float **x, const float **weight,
                         const float **weight_next)
{
    const few_channels_plan *n = w->n;
    int plane = d * n->stride[0] - n->pad[0], row = h * n->stride[1] - n->pad[1], count = 0;
    int64_t size = (int64_t)n->inner * n->outs;

    low = max_int(low, -row);
    high = min_int(high, n->x.extent[1] - row);
    for (int kd = max_int(0, -plane); kd < min_int(n->kernel[0], n->x.extent[0] - plane); kd++)
        for (int k = low; k < high; k++, count++) {
            const float *from = w->weight + (int64_t)kd * n->kernel[1] * size;
            x[count] = few_channels_buffered(w, plane + kd, row + k);
            if (mine)
                weight[count] = from + k * size;
            if (next)
                weight_next[count] = from + (k - n->stride[1]) * size;
        }
    return count;
}

static void find_two_rows(few_channels_task *w, few_channels_two_taps *r, int d, int h, bool two)
{
    const few_channels_plan *n = w->n;
    int s = n->stride[1], k = n->kernel[1], count = 0;
    const struct { int low, high; bool mine, next; } part[3] = {
        { 0, two ? min_int(s, k) : k, true, false },
        { s, two ? k : s, true, true },
        { max_int(s, k), two ? k + s : 0, false, true },
    };

    if (two && few_channels_step_rows(w, r->x, r->end[2], d, h * s - n->pad[1], k + s, 2 * s))
        return;
    for (int i = 0; i < 3; i++) {
        count += two_rows_taps(w, d, h, part[i].low, part[i].high, part[i].mine, part[i].next,
                               r->x + count, r->weight[0] + count, r->weight[1] + count);
        r->end[i] = count;
    }
}

void few_channels_forward_planar(few_channels_task *w)
{
    const few_channels_plan *n = w->n;
    few_channels_two_taps r;
    few_channels_two_rows rows = { .y = w->other, .width = n->y.extent[2], .pitch = n->pitch,
                                   .inner = n->inner, .shift = n->shift, .x = r.x,
                                   .weight = { r.weight[0], r.weight[1] } };

    r.end[2] = 0;
    few_channels_buffer_x_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h += 2) {
            bool two = h < w->bottom;
            few_channels_buffer_x(w, d, h + two);
            find_two_rows(w, &r, d, h, two);
            memcpy(rows.end, r.end, sizeof rows.end);
            n->planar->forward(&rows, n->outs);
            few_channels_row_join(w, &n->y, d, h, w->other, n->y.extent[2], n->outs);
            if (two)
                few_channels_row_join(w, &n->y, d, h + 1, w->other + (int64_t)n->outs * n->pitch,
                                      n->y.extent[2], n->outs);
        }
}

/* Rows of x are read where they are: a buffer that holds all of them. */
void few_channels_forward_in_place(few_channels_task *w)
{
    enum { AHEAD = 4 };
    const few_channels_plan *n = w->n;
    few_channels_two_taps r;
    few_channels_in_place rows = { .width = n->y.extent[2], .x = r.x,
                                   .weight = { r.weight[0], r.weight[1] } };

    r.end[2] = w->low_row = 0;
    w->side = &n->x;
    w->buffer = (float *)w->in + few_channels_row_at(&n->x, w->image, 0, 0);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h += 2) {
            bool two = h < w->bottom;
            int plane = min_int(d * n->stride[0] - n->pad[0] + n->kernel[0], n->x.extent[0]) - 1;
            for (int i = 0; i < 2 * n->stride[1]; i++)
                few_channels_row_prefetch(&n->x, w->in, w->image, plane,
                                          h * n->stride[1] + i + AHEAD);
            find_two_rows(w, &r, d, h, two);
            memcpy(rows.end, r.end, sizeof rows.end);
            for (int i = 0; i < 2; i++)
                rows.y[i] = i > two ? NULL : (uint16_t *)w->out +
                                                 few_channels_row_at(&n->y, w->image, d, h + i);
            n->lanes->bf16x2->in_place(&rows, n->outs);
        }
}
