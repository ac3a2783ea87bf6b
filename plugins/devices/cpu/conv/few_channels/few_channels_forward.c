/*
 * few_channels_forward.c - runs from few channels to many. The factors are floats, pairs along a
 * row, or pairs of two rows.
 */
#include "cpu/conv/few_channels/few_channels_internal.h"

#include <string.h>

#include "base/integer.h"

/* Rows and weights of the taps that output row (d, h) of a forward convolution reads. */
static void forward_taps(few_channels_task *w, int d, int h)
{
    const few_channels_plan *n = w->n;

    if (few_channels_find_taps(w, d, h))
        for (int i = 0; i < w->taps; i++)
            w->block[i] = w->weight + (int64_t)w->tap[i] * n->inner * n->outs;
}

void few_channels_forward_vector(few_channels_task *w)
{
    const few_channels_plan *n = w->n;
    int width = n->y.extent[2], c = n->y.channels;
    bool direct = n->y.type == PONS_F32 && c == n->outs;

    few_channels_buffer_x_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            int64_t at = few_channels_row_at(&n->y, w->image, d, h);
            float *to = direct ? (float *)w->out + at : w->other;
            few_channels_buffer_x(w, d, h);
            forward_taps(w, d, h);
            n->vector_loops->forward(to, width, n->outs, w->taps, w->row,
                                     n->stride[2] * n->x.channels, n->inner, w->block);
            for (int i = 1; i < width && c < n->outs; i++)
                memmove(to + (int64_t)i * c, to + (int64_t)i * n->outs,
                        (size_t)c * sizeof(float));
            if (!direct)
                few_channels_row_write(n, &n->y, w->out, at, to);
        }
}

/* Rows and weights of what output row (d, h) reads, pairs of rows first; how many those are. */
static int find_interleaved(few_channels_task *w, int d, int h, int interleaved)
{
    const few_channels_plan *n = w->n;
    int plane = d * n->stride[0] - n->pad[0], row = h * n->stride[1] - n->pad[1], count = 0;
    int first = max_int(0, -plane), last = min_int(n->kernel[0], n->x.extent[0] - plane);
    int64_t numbers = (int64_t)n->kernel[2] * n->x.channels * n->outs;
    int64_t plain = (int64_t)n->inner * n->outs;
    int64_t size = n->interleaved_at > 0 ? numbers + plain : n->kernel[1] * plain;

    if (few_channels_step_rows(w, w->row, w->taps, d, row, n->kernel[1], n->stride[1]))
        return interleaved;
    for (int kd = first; kd < last && n->interleaved_at > 0 && row >= -1
         && row < n->x.extent[1]; kd++) {
        w->row[count] = few_channels_buffered(w, plane + kd, row) + n->interleaved_at;
        w->block[count++] = w->weight + kd * size;
    }
    interleaved = count;
    for (int kd = first; kd < last; kd++)
        for (int kh = n->interleaved_at > 0 ? 2 : 0; kh < n->kernel[1]; kh++) {
            if (row + kh < 0 || row + kh >= n->x.extent[1])
                continue;
            w->row[count] = few_channels_buffered(w, plane + kd, row + kh);
            w->block[count++] = w->weight + kd * size + (n->interleaved_at > 0 ? numbers
                                                         : kh * plain);
        }
    w->taps = count;
    return interleaved;
}

void few_channels_forward_interleaved(few_channels_task *w)
{
    const few_channels_plan *n = w->n;
    few_channels_interleave row = { .width = n->y.extent[2], .outs = n->outs,
                                    .step = n->stride[2] * n->x.channels,
                                    .numbers = n->kernel[2] * n->x.channels, .x = w->row, .weight
                                        = w->block };

    few_channels_buffer_x_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            few_channels_buffer_x(w, d, h);
            row.interleaved = find_interleaved(w, d, h, row.interleaved);
            row.taps = w->taps;
            row.y = (uint16_t *)w->out + few_channels_row_at(&n->y, w->image, d, h);
            n->lanes->bf16x2->forward(&row);
        }
}
