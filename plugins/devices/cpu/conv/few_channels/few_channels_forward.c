/*
 * few_channels_forward.c - runs of narrow convolutions that sum up rows of many channels from the
 * rows that the kernel reads: in floats or pairs along a row, or in pairs that two rows make as
 * well.
 */
#include "cpu/conv/few_channels/few_channels_task.h"

#include <string.h>

#include "base/integer.h"

/* Rows and weights of the taps that output row (d, h) of a forward convolution reads. */
static void forward_taps(narrow_work *w, int d, int h)
{
    const narrow *n = w->n;

    if (narrow_find_taps(w, d, h))
        for (int i = 0; i < w->taps; i++)
            w->block[i] = w->weight + (int64_t)w->tap[i] * n->inner * n->outs;
}

void narrow_forward_wide(narrow_work *w)
{
    const narrow *n = w->n;
    int width = n->y.extent[2], c = n->y.channels;
    bool direct = n->y.type == PONS_F32 && c == n->outs;

    narrow_buffer_x_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            int64_t at = narrow_row_at(&n->y, w->image, d, h);
            float *to = direct ? (float *)w->out + at : w->other;
            narrow_buffer_x(w, d, h);
            forward_taps(w, d, h);
            n->wide->forward(to, width, n->outs, w->taps, w->row, n->stride[2] * n->x.channels,
                             n->inner, w->block);
            for (int i = 1; i < width && c < n->outs; i++)
                memmove(to + (int64_t)i * c, to + (int64_t)i * n->outs,
                        (size_t)c * sizeof(float));
            if (!direct)
                narrow_row_write(n, &n->y, w->out, at, to);
        }
}

/* Rows and weights of what output row (d, h) reads, pairs of rows first; how many those are. */
static int find_zipped(narrow_work *w, int d, int h, int zipped)
{
    const narrow *n = w->n;
    int plane = d * n->stride[0] - n->pad[0], row = h * n->stride[1] - n->pad[1], count = 0;
    int first = max_int(0, -plane), last = min_int(n->kernel[0], n->x.extent[0] - plane);
    int64_t numbers = (int64_t)n->kernel[2] * n->x.channels * n->outs;
    int64_t plain = (int64_t)n->inner * n->outs;
    int64_t size = n->zips > 0 ? numbers + plain : n->kernel[1] * plain;

    if (narrow_step_rows(w, w->row, w->taps, d, row, n->kernel[1], n->stride[1]))
        return zipped;
    for (int kd = first; kd < last && n->zips > 0 && row >= -1 && row < n->x.extent[1]; kd++) {
        w->row[count] = narrow_buffered(w, plane + kd, row) + n->zips;
        w->block[count++] = w->weight + kd * size;
    }
    zipped = count;
    for (int kd = first; kd < last; kd++)
        for (int kh = n->zips > 0 ? 2 : 0; kh < n->kernel[1]; kh++) {
            if (row + kh < 0 || row + kh >= n->x.extent[1])
                continue;
            w->row[count] = narrow_buffered(w, plane + kd, row + kh);
            w->block[count++] = w->weight + kd * size + (n->zips > 0 ? numbers : kh * plain);
        }
    w->taps = count;
    return zipped;
}

void narrow_forward_zipped(narrow_work *w)
{
    const narrow *n = w->n;
    narrow_zip row = { .width = n->y.extent[2], .outs = n->outs,
                       .step = n->stride[2] * n->x.channels,
                       .numbers = n->kernel[2] * n->x.channels, .x = w->row, .weight = w->block };

    narrow_buffer_x_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            narrow_buffer_x(w, d, h);
            row.zipped = find_zipped(w, d, h, row.zipped);
            row.taps = w->taps;
            row.y = (uint16_t *)w->out + narrow_row_at(&n->y, w->image, d, h);
            n->lanes->pairs->forward(&row);
        }
}
