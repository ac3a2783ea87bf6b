/*
 * narrow_run.c - run a narrow convolution: tasks, and the rows that they read and write.
 *
 * A task is a band of rows in a block of planes. It turns the rows that it reads into padded
 * float rows in its thread's scratch and calls the loops of narrow_lanes.h row by row.
 */
#include "cpu.h"
#include "narrow_plan.h"

#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */

static void row_read(const narrow *n, const narrow_side *s, const void *from, int64_t at, float *to)
{
    if (s->type == PONS_BF16)
        n->lanes->layout->from_bf16(to, (const uint16_t *)from + at, s->row);
    else
        memcpy(to, (const float *)from + at, (size_t)s->row * sizeof(float));
}

static void row_write(const narrow *n, const narrow_side *s, void *to, int64_t at,
                      const float *from)
{
    if (s->type == PONS_BF16)
        n->lanes->layout->to_bf16((uint16_t *)to + at, from, s->row);
    else
        memcpy((float *)to + at, from, (size_t)s->row * sizeof(float));
}

static int64_t row_at(const narrow_side *s, int image, int plane, int row)
{
    return ((int64_t)image * s->extent[0] + plane) * s->plane + (int64_t)row * s->row;
}

/* One row of x as pairs [w / 2][j] of what two neighbouring positions of y meet. */
static void fill_x_pairs(const narrow *n, const void *x, int64_t at, float *line, float *to)
{
    uint16_t *row = (uint16_t *)line;

    memset(row, 0, (size_t)n->line * sizeof *row);
    memcpy(row + n->pad[2] * n->x.channels, (const uint16_t *)x + at,
           (size_t)n->x.row * sizeof *row);
    n->lanes->pairs->zip(to, n->inner, row, n->stride[2] * n->x.channels, n->inner,
                         n->y.extent[2]);
}

/* One row of x behind its padding; planar: channels and phases of the stride apart. */
static void fill_x(const narrow *n, const void *x, int64_t at, float *line, float *to)
{
    int before = n->pad[2] * n->x.channels, groups = n->stride[2] * n->x.channels;
    bool planar = n->form == PLANAR_FORWARD || n->form == PLANAR_WEIGHT;
    float *row = planar ? line : to;
    int64_t size = planar ? n->line : n->row;

    memset(row, 0, (size_t)size * sizeof(float));
    row_read(n, &n->x, x, at, row + before);
    if (planar) {
        n->lanes->layout->split(to, n->pitch, line,
                                over(n->pad[2] + n->x.extent[2], n->stride[2]), groups);
    }
}

/* One row of y with its channels apart, zero behind its end. */
static void fill_y(const narrow *n, const void *y, int64_t at, float *line, float *to)
{
    row_read(n, &n->y, y, at, line);
    n->lanes->layout->split(to, n->pitch, line, n->y.extent[2], n->y.channels);
}

/* ---- one task: what a thread has while it works ---------------------------------------------- */

typedef struct work {
    const narrow *n;
    const float *weight;
    const void *y, *in;      /* in: of x and y the one that is buffered */
    void *out;
    float *buffer, *line, *other;
    int image, first, last;  /* output planes of this task */
    int top, bottom;         /* output rows */
    int low, low_row;        /* first buffered plane and row */
    const float **row, **block;
} work;

static const float *buffered(const work *w, int plane, int row)
{
    return w->buffer + (plane - w->low) * w->n->plane + (row - w->low_row) * w->n->row;
}

typedef void fill(const narrow *n, const void *from, int64_t at, float *line, float *to);

/* Planes and rows from 'low' to 'high', as far as there are any. */
static void buffer_box(work *w, const narrow_side *s, const int low[2], const int high[2],
                       fill *one)
{
    const narrow *n = w->n;

    w->low = larger(low[0], 0);
    w->low_row = larger(low[1], 0);
    for (int plane = w->low; plane <= smaller(high[0], s->extent[0] - 1); plane++)
        for (int row = w->low_row; row <= smaller(high[1], s->extent[1] - 1); row++)
            one(n, w->in, row_at(s, w->image, plane, row), w->line,
                w->buffer + (plane - w->low) * n->plane + (row - w->low_row) * n->row);
}

/* Whether a tap of output row (d, h) lies inside x, and the row that it reads. */
static bool meet(const work *w, int tap, int d, int h, const float **to)
{
    const narrow *n = w->n;
    int plane = d * n->stride[0] + tap / n->kernel[1] - n->pad[0];
    int row = h * n->stride[1] + tap % n->kernel[1] - n->pad[1];

    if (plane < 0 || plane >= n->x.extent[0] || row < 0 || row >= n->x.extent[1])
        return false;
    *to = buffered(w, plane, row);
    return true;
}

/* Rows and weights of the taps that output row (d, h) of a forward convolution reads. */
static int forward_taps(const work *w, int d, int h)
{
    const narrow *n = w->n;
    int count = 0;

    for (int tap = 0; tap < n->taps; tap++) {
        if (!meet(w, tap, d, h, &w->row[count]))
            continue;
        w->block[count++] = w->weight + (int64_t)tap * n->inner * n->outs;
    }
    return count;
}

static void buffer_x(work *w)
{
    const narrow *n = w->n;
    const int first[2] = { w->first, w->top }, last[2] = { w->last, w->bottom };
    int low[2], high[2];

    for (int i = 0; i < 2; i++) {
        low[i] = first[i] * n->stride[i] - n->pad[i];
        high[i] = last[i] * n->stride[i] - n->pad[i] + n->kernel[i] - 1;
    }
    buffer_box(w, &n->x, low, high, n->pairs && narrow_is_weight(n) ? fill_x_pairs : fill_x);
}

static void run_wide_forward(work *w)
{
    const narrow *n = w->n;
    int width = n->y.extent[2], c = n->y.channels;
    bool direct = n->y.type == PONS_F32 && c == n->outs;

    buffer_x(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            int64_t at = row_at(&n->y, w->image, d, h);
            float *to = direct ? (float *)w->out + at : w->other;
            n->wide->forward(to, width, n->outs, forward_taps(w, d, h), w->row,
                             n->stride[2] * n->x.channels, n->inner, w->block);
            for (int i = 1; i < width && c < n->outs; i++)
                memmove(to + (int64_t)i * c, to + (int64_t)i * n->outs,
                        (size_t)c * sizeof(float));
            if (!direct)
                row_write(n, &n->y, w->out, at, to);
        }
}

static void run_planar_forward(work *w)
{
    const narrow *n = w->n;

    buffer_x(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            int taps = forward_taps(w, d, h);
            n->planar->forward(w->other, n->y.extent[2], n->pitch, n->outs, taps, w->row, n->shift,
                               n->inner, w->block);
            n->lanes->layout->join(w->line, w->other, n->pitch, n->y.extent[2], n->y.channels);
            row_write(n, &n->y, w->out, row_at(&n->y, w->image, d, h), w->line);
        }
}

/* The plane or row of y that kernel position k carries to position 'at' of x; -1: none. */
static int source(const narrow *n, int axis, int at, int k)
{
    int shifted = at + n->pad[axis] - k;

    if (shifted < 0 || shifted % n->stride[axis] != 0 ||
        shifted / n->stride[axis] >= n->y.extent[axis])
        return -1;
    return shifted / n->stride[axis];
}

static int spread_taps(const work *w, int d, int h)
{
    const narrow *n = w->n;
    int count = 0;

    for (int tap = 0; tap < n->taps; tap++) {
        int plane = source(n, 0, d, tap / n->kernel[1]);
        int row = source(n, 1, h, tap % n->kernel[1]);
        if (plane < 0 || row < 0)
            continue;
        w->row[count] = buffered(w, plane, row);
        w->block[count++] = w->weight + (int64_t)tap * n->outs * n->inner;
    }
    return count;
}

/* x[q s + phase][i] = sum over kw of z[kw, i][q + (phase + pad - kw) / s]. */
static void gather_phases(const narrow *n, const float *z, float *rows)
{
    int s = n->stride[2], width = over(n->x.extent[2], s), c = n->x.channels;

    for (int phase = 0; phase < s; phase++)
        for (int i = 0; i < c; i++) {
            const float *from[NARROW_MARGIN];
            int count = 0;
            for (int kw = 0; kw < n->kernel[2]; kw++) {
                int offset = phase + n->pad[2] - kw;
                if (offset % s == 0)
                    from[count++] = z + (int64_t)(kw * c + i) * n->pitch + offset / s;
            }
            n->lanes->planar->add(rows + (int64_t)(phase * c + i) * n->pitch, width, count, from);
        }
}

/* What reaches the task's box of x. */
static void buffer_sources(work *w)
{
    const narrow *n = w->n;
    const int first[2] = { w->first, w->top }, last[2] = { w->last, w->bottom };
    int low[2], high[2];

    for (int i = 0; i < 2; i++) {
        low[i] = n->y.extent[i];
        high[i] = -1;
        for (int at = first[i]; at <= last[i]; at++)
            for (int k = 0; k < n->kernel[i]; k++) {
                int from = source(n, i, at, k);
                low[i] = from >= 0 ? smaller(low[i], from) : low[i];
                high[i] = larger(high[i], from);
            }
    }
    buffer_box(w, &n->y, low, high, fill_y);
}

static void run_planar_spread(work *w)
{
    const narrow *n = w->n;
    int s = n->stride[2];
    float *z = w->other + NARROW_MARGIN;
    float *rows = w->other + (int64_t)n->pitch * n->inner + 2 * NARROW_MARGIN;

    buffer_sources(w);
    memset(w->other, 0, (size_t)(n->pitch * n->inner + 2 * NARROW_MARGIN) * sizeof(float));
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            int taps = spread_taps(w, d, h);
            n->planar->spread(z, n->y.extent[2], n->pitch, n->inner, taps, w->row, n->y.channels,
                              w->block);
            gather_phases(n, z, rows);
            n->lanes->layout->join(w->line, rows, n->pitch, over(n->x.extent[2], s),
                                   s * n->x.channels);
            row_write(n, &n->x, w->out, row_at(&n->x, w->image, d, h), w->line);
        }
}

/* One row of y for the weight gradient: [w][outs], zero in channels that only pad. */
static const float *read_wide_y(const narrow *n, const void *y, int64_t at, float *line, float *to)
{
    int c = n->y.channels;

    if (c == n->outs && n->y.type == PONS_F32)
        return (const float *)y + at;
    row_read(n, &n->y, y, at, c == n->outs ? to : line);
    for (int i = 0; i < n->y.extent[2] && c < n->outs; i++) {
        memcpy(to + (int64_t)i * n->outs, line + (int64_t)i * c, (size_t)c * sizeof(float));
        memset(to + (int64_t)i * n->outs + c, 0, (size_t)(n->outs - c) * sizeof(float));
    }
    return to;
}

/* The rows of x that meet row (d, h) of y, and the sums of their taps. */
static int weight_taps(const work *w, int d, int h, float *sum, float **to)
{
    const narrow *n = w->n;
    int64_t size = n->sums / n->taps;
    int count = 0;

    for (int tap = 0; tap < n->taps; tap++) {
        if (!meet(w, tap, d, h, &w->row[count]))
            continue;
        to[count++] = sum + tap * size;
    }
    return count;
}

/* One row of y as pairs [w / 2][outs], zero in channels that only pad. */
static void fill_y_pairs(const narrow *n, const void *y, int64_t at, float *to)
{
    int c = n->y.channels, pairs = over(n->y.extent[2], 2);

    n->lanes->pairs->zip(to, n->outs, (const uint16_t *)y + at, c, c, n->y.extent[2]);
    for (int i = 0; i < pairs && c < n->outs; i++)
        memset(to + (int64_t)i * n->outs + c, 0, (size_t)(n->outs - c) * sizeof *to);
}

/* Row 'at' of y meets rows of x. */
static void add_row(const work *w, int64_t at, int taps, float *const *to)
{
    const narrow *n = w->n;
    int width = n->y.extent[2];

    if (n->pairs) {
        fill_y_pairs(n, w->y, at, w->other);
        n->wide->weight(to, over(width, 2), n->outs, taps, w->row, n->inner, n->inner, w->other);
    } else if (n->form == WIDE_WEIGHT) {
        const float *y = read_wide_y(n, w->y, at, w->line, w->other);
        n->wide->weight(to, width, n->outs, taps, w->row, n->stride[2] * n->x.channels, n->inner,
                        y);
    } else {
        fill_y(n, w->y, at, w->line, w->other);
        for (int t = 0; t < taps; t++)
            n->planar->weight(to[t], width, n->pitch, n->outs, w->row[t], n->shift, n->inner,
                              w->other);
    }
}

static void run_weight(work *w, float *sum)
{
    const narrow *n = w->n;
    float *to[NARROW_TAPS];

    buffer_x(w);
    memset(sum, 0, (size_t)n->sums * sizeof(float));
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            int64_t at = row_at(&n->y, w->image, d, h);
            add_row(w, at, weight_taps(w, d, h, sum, to), to);
        }
}

/* ---- run ------------------------------------------------------------------------------------- */

typedef struct narrow_call {
    const narrow *n;
    const void *in, *y;
    void *out;
    float *packed, *areas, *sums;
} narrow_call;

static void run_task(void *context, int64_t i, int thread)
{
    const narrow_call *k = context;
    const narrow *n = k->n;
    const int *extent = n->form == PLANAR_SPREAD ? n->x.extent : n->y.extent;
    const float *row[NARROW_TAPS], *block[NARROW_TAPS];
    int task = (int)i;
    work w = { .n = n, .in = k->in, .y = k->y, .out = k->out, .weight = k->packed, .row = row,
               .block = block, .buffer = k->areas + thread * n->area };

    w.line = w.buffer + n->planes * n->plane;
    w.other = w.line + n->line;
    w.image = task / n->bands / n->blocks;
    w.first = task / n->bands % n->blocks * n->block;
    w.last = smaller(w.first + n->block, extent[0]) - 1;
    w.top = task % n->bands * n->band;
    w.bottom = smaller(w.top + n->band, extent[1]) - 1;
    switch (n->form) {
    case WIDE_FORWARD: run_wide_forward(&w); break;
    case PLANAR_FORWARD: run_planar_forward(&w); break;
    case PLANAR_SPREAD: run_planar_spread(&w); break;
    default: run_weight(&w, k->sums + task * n->sums); break;
    }
}

pons_status narrow_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const narrow *n = kernel->state;
    bool weight = narrow_is_weight(n);
    float *packed = call->scratch, *areas = packed + n->weights;
    narrow_call k = { .n = n, .out = call->output[0], .packed = packed, .areas = areas,
                      .sums = areas + n->threads * n->area };

    (void)err;
    k.in = call->input[weight && n->swapped ? 1 : 0];
    k.y = weight ? call->input[n->swapped ? 0 : 1] : NULL;
    if (!weight)
        narrow_weight_pack(n, call->input[1], packed);
    cpu_parallel(n->threads, n->tasks, run_task, &k);
    if (weight) {
        narrow_weight_add(n, k.sums);
        narrow_weight_write(n, k.sums, call->output[0]);
    }
    return PONS_OK;
}
