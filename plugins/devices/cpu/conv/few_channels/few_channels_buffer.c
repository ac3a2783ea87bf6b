/*
 * few_channels_buffer.c - the buffered rows of a task, and the rows that the taps of an output row
 * read.
 *
 * The buffer is a ring of the planes that one output plane reads, filled row by row, or it has all
 * rows of the task. A row is filled once and read by all its taps.
 */
#include "cpu/conv/few_channels/few_channels_internal.h"

#include <string.h>

#include "base/integer.h"

void few_channels_buffer_begin(few_channels_task *w, const few_channels_side *s, const int low[2],
                               few_channels_fill *fill)
{
    w->side = s;
    w->fill = fill;
    w->low_row = max_int(low[1], -s->pair_stride);
    w->full = w->newest = max_int(low[0], 0) - 1;
    w->ready = w->low_row;
}

void few_channels_buffer_up_to(few_channels_task *w, int plane, int row)
{
    enum { AHEAD = 4 };
    const few_channels_plan *n = w->n;
    const few_channels_side *s = w->side;

    plane = min_int(plane, s->extent[0] - 1);
    if (plane > w->newest) {
        w->full = max_int(w->newest, plane - n->planes);
        w->newest = plane;
        w->ready = w->low_row;
    }
    row = min_int(row, s->extent[1] - 1);
    for (int p = w->full + 1; p <= w->newest; p++)
        for (int r = w->ready; r <= row; r++) {
            if (n->interleaved || few_channels_is_weight(n))
                few_channels_row_prefetch(s, w->in, w->image, p, r + AHEAD);
            w->fill(n, w->in, w->image, p, r, w->line,
                    w->buffer + p % n->planes * n->plane + (r - w->low_row) * n->row);
        }
    w->ready = max_int(w->ready, row + 1);
}

bool few_channels_step_rows(few_channels_task *w, const float **x, int taps, int d, int row,
                            int count, int step)
{
    const few_channels_plan *n = w->n;
    bool inside = row >= 0 && row + count <= w->side->extent[1], again = inside && w->inside == d;
    int64_t on = step * n->row;

    if (again)
        for (int i = 0; i < taps; i++)
            x[i] += on;
    w->inside = inside ? d : -1;
    return again;
}

bool few_channels_find_taps(few_channels_task *w, int d, int h)
{
    const few_channels_plan *n = w->n;
    int plane = d * n->stride[0] - n->pad[0], row = h * n->stride[1] - n->pad[1], count = 0;
    int first = max_int(0, -n->x.pair_stride - row), last = min_int(n->kernel[1],
                                                                    n->x.extent[1] - row);

    if (few_channels_step_rows(w, w->row, w->taps, d, row, n->kernel[1],
                               few_channels_rows_together(n) * n->stride[1]))
        return false;
    for (int kd = max_int(0, -plane); kd < min_int(n->kernel[0], n->x.extent[0] - plane); kd++) {
        const float *x = few_channels_buffered(w, plane + kd, row);
        for (int kh = first; kh < last; kh++) {
            w->row[count] = x + kh * n->row;
            w->tap[count++] = kd * n->kernel[1] + kh;
        }
    }
    w->taps = count;
    return true;
}

void few_channels_buffer_x_begin(few_channels_task *w)
{
    const few_channels_plan *n = w->n;
    const int first[2] = { w->first, w->top };
    int low[2];

    for (int i = 0; i < 2; i++)
        low[i] = first[i] * n->stride[i] - n->pad[i];
    few_channels_buffer_begin(w, &n->x, low, few_channels_fill_of(n));
    if (n->form == VECTOR_FORWARD && n->bf16x2)
        memset(w->buffer, 0, (size_t)(n->planes * n->plane) * sizeof(float));
}

void few_channels_buffer_x(few_channels_task *w, int d, int h)
{
    const few_channels_plan *n = w->n;

    d = n->ring ? d : w->last;
    h = n->ring ? h : w->bottom;
    few_channels_buffer_up_to(w, d * n->stride[0] - n->pad[0] + n->kernel[0] - 1,
                              h * n->stride[1] - n->pad[1] + n->kernel[1] - 1);
}
