/*
 * few_channels_buffer.c - the rows that a task of a narrow convolution has at hand, and which of
 * them the taps of an output row read.
 *
 * The buffer is a ring of the planes that one output plane reads, filled row by row as the run
 * moves on, or holds all that the task reads. A row is made once and read by all taps it meets.
 */
#include "cpu/conv/few_channels/few_channels_task.h"

#include <string.h>

#include "base/integer.h"

void narrow_buffer_begin(narrow_work *w, const narrow_side *s, const int low[2],
                         narrow_fill *fill)
{
    w->side = s;
    w->fill = fill;
    w->low_row = max_int(low[1], -s->apart);
    w->full = w->newest = max_int(low[0], 0) - 1;
    w->ready = w->low_row;
}

void narrow_buffer_up_to(narrow_work *w, int plane, int row)
{
    enum { AHEAD = 4 };
    const narrow *n = w->n;
    const narrow_side *s = w->side;

    plane = min_int(plane, s->extent[0] - 1);
    if (plane > w->newest) {
        w->full = max_int(w->newest, plane - n->planes);
        w->newest = plane;
        w->ready = w->low_row;
    }
    row = min_int(row, s->extent[1] - 1);
    for (int p = w->full + 1; p <= w->newest; p++)
        for (int r = w->ready; r <= row; r++) {
            if (n->zipped || narrow_is_weight(n))
                narrow_row_ask(s, w->in, w->image, p, r + AHEAD);
            w->fill(n, w->in, w->image, p, r, w->line,
                    w->buffer + p % n->planes * n->plane + (r - w->low_row) * n->row);
        }
    w->ready = max_int(w->ready, row + 1);
}

bool narrow_step_rows(narrow_work *w, const float **x, int taps, int d, int row, int count,
                      int step)
{
    const narrow *n = w->n;
    bool inside = row >= 0 && row + count <= w->side->extent[1], again = inside && w->inside == d;
    int64_t on = step * n->row;

    if (again)
        for (int i = 0; i < taps; i++)
            x[i] += on;
    w->inside = inside ? d : -1;
    return again;
}

bool narrow_find_taps(narrow_work *w, int d, int h)
{
    const narrow *n = w->n;
    int plane = d * n->stride[0] - n->pad[0], row = h * n->stride[1] - n->pad[1], count = 0;
    int first = max_int(0, -n->x.apart - row), last = min_int(n->kernel[1], n->x.extent[1] - row);

    if (narrow_step_rows(w, w->row, w->taps, d, row, n->kernel[1],
                         narrow_together(n) * n->stride[1]))
        return false;
    for (int kd = max_int(0, -plane); kd < min_int(n->kernel[0], n->x.extent[0] - plane); kd++) {
        const float *x = narrow_buffered(w, plane + kd, row);
        for (int kh = first; kh < last; kh++) {
            w->row[count] = x + kh * n->row;
            w->tap[count++] = kd * n->kernel[1] + kh;
        }
    }
    w->taps = count;
    return true;
}

void narrow_buffer_x_begin(narrow_work *w)
{
    const narrow *n = w->n;
    const int first[2] = { w->first, w->top };
    int low[2];

    for (int i = 0; i < 2; i++)
        low[i] = first[i] * n->stride[i] - n->pad[i];
    narrow_buffer_begin(w, &n->x, low, narrow_fill_of(n));
    if (n->form == WIDE_FORWARD && n->pairs)
        memset(w->buffer, 0, (size_t)(n->planes * n->plane) * sizeof(float));
}

void narrow_buffer_x(narrow_work *w, int d, int h)
{
    const narrow *n = w->n;

    d = n->ring ? d : w->last;
    h = n->ring ? h : w->bottom;
    narrow_buffer_up_to(w, d * n->stride[0] - n->pad[0] + n->kernel[0] - 1,
                        h * n->stride[1] - n->pad[1] + n->kernel[1] - 1);
}
