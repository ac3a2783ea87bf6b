/*
 * few_channels_weight_gradient.c - run weight gradients.
 *
 * A row of y is multiplied by the rows of x that the kernel reads for it. Every task has its own
 * sums, which few_channels_weight.c adds.
 */
#include "cpu/conv/few_channels/few_channels_internal.h"

#include <string.h>

#include "base/integer.h"

/* One row of y for the weight gradient, [w][outs]. Padding channels are zero. */
static const float *read_padded_y(const few_channels_plan *n, const void *y, int image, int plane,
                                  int row, float *line, float *to)
{
    int c = n->y.channels;

    if (c == n->outs && n->y.type == PONS_F32)
        return (const float *)y + few_channels_row_at(&n->y, image, plane, row);
    few_channels_row_read(n, &n->y, y, image, plane, row, c == n->outs ? to : line);
    for (int i = 0; i < n->y.extent[2] && c < n->outs; i++) {
        memcpy(to + (int64_t)i * n->outs, line + (int64_t)i * c, (size_t)c * sizeof(float));
        memset(to + (int64_t)i * n->outs + c, 0, (size_t)(n->outs - c) * sizeof(float));
    }
    return to;
}

/* Find the rows of x that are multiplied by row (d, h) of y, and the sums of their taps. */
static void weight_taps(few_channels_task *w, int d, int h, float *sum)
{
    if (few_channels_find_taps(w, d, h))
        for (int i = 0; i < w->taps; i++)
            w->sum[i] = sum + w->tap[i] * (w->n->sums / w->n->taps);
}

/* Add the products of row h of plane d of y and its rows of x. */
static void add_row(few_channels_task *w, int d, int h, float *sum)
{
    const few_channels_plan *n = w->n;
    const float *y = read_padded_y(n, w->y, w->image, d, h, w->line, w->other);

    for (int i = 0; i < few_channels_rows_together(n); i++)
        few_channels_row_prefetch(&n->y, w->y, w->image, d, h + few_channels_rows_together(n) + i);
    weight_taps(w, d, h, sum);
    n->vector_loops->weight(w->sum, n->y.extent[2], n->outs, w->taps, w->row,
                            n->stride[2] * n->x.channels, n->inner, y);
}

/*
 * A channel of y at a kernel position (kd, kh). Rows u of x are counted in steps of the distance
 * between rows of y. Row u of x is multiplied by row u - shift of y, for low <= u < high.
 */
typedef struct line {
    float *sum;
    const float *y; /* first row of the channel */
    int shift, low, high;
} line;

static void add_rows(const few_channels_plan *n, const float *x, int64_t x_next, const line *l,
                     int lines, int low, int high)
{
    int64_t y_next = (int64_t)n->y_pitch * n->outs;
    const float *y[FEW_CHANNELS_LINES];
    float *sum[FEW_CHANNELS_LINES];

    for (int i = 0; i < lines; i++) {
        y[i] = l[i].y + (low - l[i].shift) * y_next;
        sum[i] = l[i].sum;
    }
    if (low < high)
        n->planar->weight(sum, lines, n->y.extent[2], high - low, x + low * x_next, x_next,
                          n->shift, n->inner, y, y_next);
}

/* Add the rows that all lines share in one pass, then the remaining rows of each line. */
static void add_lines(const few_channels_plan *n, const float *x, int64_t x_next, const line *l,
                      int lines)
{
    int low = l[0].low, high = l[0].high;

    for (int i = 1; i < lines; i++) {
        low = max_int(low, l[i].low);
        high = min_int(high, l[i].high);
    }
    high = max_int(high, low);
    add_rows(n, x, x_next, l, lines, low, high);
    for (int i = 0; i < lines; i++) {
        add_rows(n, x, x_next, l + i, 1, l[i].low, min_int(low, l[i].high));
        add_rows(n, x, x_next, l + i, 1, max_int(high, l[i].low), l[i].high);
    }
}

/* The lines of kernel positions (kd, .) that read rows 'phase' + i 'step' of x. */
static int find_lines(const few_channels_task *w, int kd, int step, int phase, float *sum,
                      line *lines)
{
    const few_channels_plan *n = w->n;
    int rows = ceil_div_int(n->y.extent[1], few_channels_rows_together(n));
    int first = phase + n->x.pair_stride, count = 0;

    for (int kh = 0; kh < n->kernel[1]; kh++) {
        int shift = floor_div_int(kh - n->pad[1], step);
        if (kh - n->pad[1] - shift * step != phase)
            continue;
        for (int o = 0; o < n->outs; o++)
            lines[count++] = (line){
                .sum = sum + ((int64_t)(kd * n->kernel[1] + kh) * n->outs + o) * n->inner *
                                 FEW_CHANNELS_LANES,
                .y = w->other + (int64_t)o * n->y_pitch, .shift = shift,
                .low = max_int(shift, -(first / step)),
                .high = min_int(shift + rows, floor_div_int(n->x.extent[1] - 1 - phase, step) + 1),
            };
    }
    return count;
}

/* Add the products of plane d of y and its planes of x. */
static void add_plane(const few_channels_task *w, int d, float *sum)
{
    const few_channels_plan *n = w->n;
    int together = few_channels_rows_together(n), step = together * n->stride[1];
    line lines[FEW_CHANNELS_TAPS * FEW_CHANNELS_MAX];

    for (int h = 0; h < n->y.extent[1]; h += together)
        few_channels_fill_y(n, w->y, w->image, d, h, w->line,
                            w->other + (int64_t)(h / together) * n->y_pitch * n->outs);
    for (int kd = 0; kd < n->kernel[0]; kd++) {
        int plane = d * n->stride[0] + kd - n->pad[0];
        if (plane < 0 || plane >= n->x.extent[0])
            continue;
        for (int phase = 0; phase < step; phase++) {
            int count = find_lines(w, kd, step, phase, sum, lines);
            for (int i = 0, some; i < count; i += some) {
                some = count - i == FEW_CHANNELS_LINES ? FEW_CHANNELS_LINES : min_int(3, count - i);
                add_lines(n, few_channels_buffered(w, plane, phase), step * n->row, lines + i,
                          some);
            }
        }
    }
}

void few_channels_weight_gradient(few_channels_task *w, float *sum)
{
    const few_channels_plan *n = w->n;

    few_channels_buffer_x_begin(w);
    few_channels_buffer_x(w, w->last, w->bottom);
    memset(sum, 0, (size_t)n->sums * sizeof(float));
    for (int d = w->first; d <= w->last; d++) {
        if (n->form == PLANAR_WEIGHT)
            add_plane(w, d, sum);
        for (int h = 0; h < n->y.extent[1]
             && n->form == VECTOR_WEIGHT; h += few_channels_rows_together(n))
            add_row(w, d, h, sum);
    }
}
