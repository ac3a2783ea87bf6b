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

static int64_t row_at(const narrow_side *s, int image, int plane, int row)
{
    return ((int64_t)image * s->extent[0] + plane) * s->plane + (int64_t)row * s->row;
}

/* NULL: there is none. */
static const uint16_t *half_at(const narrow_side *s, const void *from, int image, int plane,
                               int row)
{
    if (row < 0 || row >= s->extent[1])
        return NULL;
    return (const uint16_t *)from + row_at(s, image, plane, row);
}

/* Row 'row', or the pair that begins with it. */
static void row_read(const narrow *n, const narrow_side *s, const void *from, int image, int plane,
                     int row, float *to)
{
    int64_t at = row_at(s, image, plane, row);

    if (s->apart > 0)
        n->lanes->pairs->zip(to, half_at(s, from, image, plane, row),
                             half_at(s, from, image, plane, row + s->apart), s->row);
    else if (s->type == PONS_BF16)
        n->lanes->layout->from_bf16(to, (const uint16_t *)from + at, s->row);
    else
        memcpy(to, (const float *)from + at, (size_t)s->row * sizeof(float));
}

static void row_write(const narrow *n, const narrow_side *s, void *to, int64_t at,
                      const float *from)
{
    if (s->type == PONS_BF16)
        n->to_bf16((uint16_t *)to + at, from, s->row);
    else
        memcpy((float *)to + at, from, (size_t)s->row * sizeof(float));
}

/* One row of a tensor where it is, if that will do: whole vectors of channels are read of it. */
static const float *row_find(const narrow *n, const narrow_side *s, const void *from, int image,
                             int plane, int row, float *line)
{
    if (s->type == PONS_F32 && s->apart == 0 &&
        (s->channels <= NARROW_CHANNELS || s->channels % NARROW_LANES == 0))
        return (const float *)from + row_at(s, image, plane, row);
    row_read(n, s, from, image, plane, row, line);
    return line;
}

/* One row of x behind its padding, channels and phases of the stride apart. */
static void fill_x_planar(const narrow *n, const void *x, int image, int plane, int row,
                          float *line, float *to)
{
    int s = n->stride[2];

    if (s == 1) {
        const float *from = row_find(n, &n->x, x, image, plane, row, line);
        memset(to, 0, (size_t)n->lead * sizeof *to);
        n->lanes->layout->split(to + n->lead, n->pitch, from, n->x.extent[2], n->x.channels);
        return;
    }
    memset(line, 0, (size_t)n->line * sizeof *line);
    row_read(n, &n->x, x, image, plane, row, line + n->pad[2] * n->x.channels);
    n->lanes->layout->split(to, n->pitch, line, over(n->pad[2] + n->x.extent[2], s),
                            s * n->x.channels);
}

/* One row of x behind its padding. */
static void fill_x(const narrow *n, const void *x, int image, int plane, int row, float *line,
                   float *to)
{
    (void)line;
    memset(to, 0, (size_t)n->row * sizeof *to);
    row_read(n, &n->x, x, image, plane, row, to + n->pad[2] * n->x.channels);
}

/* The same of numbers whose neighbours become pairs; the padding is there: see buffer_x_begin. */
static void fill_x_halves(const narrow *n, const void *x, int image, int plane, int row,
                          float *line, float *to)
{
    (void)line;
    memcpy((uint16_t *)to + n->pad[2] * n->x.channels,
           (const uint16_t *)x + row_at(&n->x, image, plane, row),
           (size_t)n->x.row * sizeof(uint16_t));
}

/*
 * The same where it is the third that a row of y reads, and its pairs with the row behind it where
 * it is the first.
 */
static void fill_x_zipped(const narrow *n, const void *x, int image, int plane, int row,
                          float *line, float *to)
{
    int at = row + n->pad[1], margin = n->pad[2] * n->x.channels;

    if (row >= 0 && (at - 2) % n->stride[1] == 0)
        fill_x_halves(n, x, image, plane, row, line, to);
    if (at % n->stride[1] == 0)
        n->lanes->pairs->zip(to + n->zips + margin, half_at(&n->x, x, image, plane, row),
                             half_at(&n->x, x, image, plane, row + 1), n->x.row);
}

/* One row of y with its channels apart, zero behind its end. */
static void fill_y(const narrow *n, const void *y, int image, int plane, int row, float *line,
                   float *to)
{
    n->lanes->layout->split(to, n->y_pitch, row_find(n, &n->y, y, image, plane, row, line),
                            n->y.extent[2], n->y.channels);
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
    int full, newest, ready; /* planes up to 'full' are buffered, and of those behind it up to
                                'newest' rows before 'ready' */
    int taps, inside;        /* found last; the plane of output rows whose taps are all inside x */
    int tap[NARROW_TAPS];
    const float *row[NARROW_TAPS], *block[NARROW_TAPS];
    float *sum[NARROW_TAPS];
} work;

static const float *buffered(const work *w, int plane, int row)
{
    const narrow *n = w->n;

    return w->buffer + plane % n->planes * n->plane + (row - w->low_row) * n->row;
}

typedef void fill(const narrow *n, const void *from, int image, int plane, int row, float *line,
                  float *to);

/* A row that is filled soon: its lines of memory come while others are computed. */
static void ask_for(const narrow_side *s, const void *from, int image, int plane, int row)
{
    enum { LINE = 64 };
    int64_t number = s->type == PONS_BF16 ? sizeof(uint16_t) : sizeof(float);

    if (row >= s->extent[1])
        return;
    const char *first = (const char *)from + row_at(s, image, plane, row) * number;
    for (int64_t i = 0; i < s->row * number; i += LINE)
        __builtin_prefetch(first + i);
}

/* Nothing is buffered; rows from 'low' on will be, or from a pair's that holds the first. */
static void buffer_begin(work *w, const narrow_side *s, const int low[2])
{
    w->low = larger(low[0], 0);
    w->low_row = larger(low[1], -s->apart);
    w->full = w->newest = w->low - 1;
    w->ready = w->low_row;
}

/* Rows up to 'row' of the planes up to 'plane', as far as there are any, or a pair's second row. */
static void buffer_up_to(work *w, const narrow_side *s, int plane, int row, fill *one)
{
    enum { AHEAD = 4 };
    const narrow *n = w->n;

    plane = smaller(plane, s->extent[0] - 1);
    if (plane > w->newest) {
        w->full = larger(w->newest, plane - n->planes);
        w->newest = plane;
        w->ready = w->low_row;
    }
    row = smaller(row, s->extent[1] - 1);
    for (int p = w->full + 1; p <= w->newest; p++)
        for (int r = w->ready; r <= row; r++) {
            if (n->zipped)
                ask_for(s, w->in, w->image, p, r + AHEAD);
            one(n, w->in, w->image, p, r, w->line,
                w->buffer + p % n->planes * n->plane + (r - w->low_row) * n->row);
        }
    w->ready = larger(w->ready, row + 1);
}

/*
 * Whether the rows of x that 'count' of them from 'row' on were found for can be had from those of
 * the output rows before: when both lie inside x, they are 'step' rows on.
 */
static bool step_rows(work *w, const float **x, int taps, int d, int row, int count, int step)
{
    const narrow *n = w->n;
    bool inside = row >= 0 && row + count <= n->x.extent[1], again = inside && w->inside == d;
    int64_t on = step * n->row;

    if (again)
        for (int i = 0; i < taps; i++)
            x[i] += on;
    w->inside = inside ? d : -1;
    return again;
}

/* Taps (kd, kh) of output row (d, h) whose row, or a pair's second, lies inside x; their rows. */
static bool find_taps(work *w, int d, int h)
{
    const narrow *n = w->n;
    int plane = d * n->stride[0] - n->pad[0], row = h * n->stride[1] - n->pad[1], count = 0;
    int first = larger(0, -n->x.apart - row), last = smaller(n->kernel[1], n->x.extent[1] - row);

    if (step_rows(w, w->row, w->taps, d, row, n->kernel[1], narrow_together(n) * n->stride[1]))
        return false;
    for (int kd = larger(0, -plane); kd < smaller(n->kernel[0], n->x.extent[0] - plane); kd++) {
        const float *x = buffered(w, plane + kd, row);
        for (int kh = first; kh < last; kh++) {
            w->row[count] = x + kh * n->row;
            w->tap[count++] = kd * n->kernel[1] + kh;
        }
    }
    w->taps = count;
    return true;
}

/* Rows and weights of the taps that output row (d, h) of a forward convolution reads. */
static void forward_taps(work *w, int d, int h)
{
    const narrow *n = w->n;

    if (find_taps(w, d, h))
        for (int i = 0; i < w->taps; i++)
            w->block[i] = w->weight + (int64_t)w->tap[i] * n->inner * n->outs;
}

static fill *fill_of(const narrow *n)
{
    if (n->form == PLANAR_FORWARD || n->form == PLANAR_WEIGHT)
        return fill_x_planar;
    if (n->zips > 0)
        return fill_x_zipped;
    return n->form == WIDE_FORWARD && n->pairs ? fill_x_halves : fill_x;
}

static void buffer_x_begin(work *w)
{
    const narrow *n = w->n;
    const int first[2] = { w->first, w->top };
    int low[2];

    for (int i = 0; i < 2; i++)
        low[i] = first[i] * n->stride[i] - n->pad[i];
    buffer_begin(w, &n->x, low);
    if (n->form == WIDE_FORWARD && n->pairs)
        memset(w->buffer, 0, (size_t)(n->planes * n->plane) * sizeof(float));
}

/* What output row h of plane d reads, and all before it; without a ring what the task reads. */
static void buffer_x(work *w, int d, int h)
{
    const narrow *n = w->n;

    d = n->ring ? d : w->last;
    h = n->ring ? h : w->bottom;
    buffer_up_to(w, &n->x, d * n->stride[0] - n->pad[0] + n->kernel[0] - 1,
                 h * n->stride[1] - n->pad[1] + n->kernel[1] - 1, fill_of(n));
}

static void run_wide_forward(work *w)
{
    const narrow *n = w->n;
    int width = n->y.extent[2], c = n->y.channels;
    bool direct = n->y.type == PONS_F32 && c == n->outs;

    buffer_x_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            int64_t at = row_at(&n->y, w->image, d, h);
            float *to = direct ? (float *)w->out + at : w->other;
            buffer_x(w, d, h);
            forward_taps(w, d, h);
            n->wide->forward(to, width, n->outs, w->taps, w->row, n->stride[2] * n->x.channels,
                             n->inner, w->block);
            for (int i = 1; i < width && c < n->outs; i++)
                memmove(to + (int64_t)i * c, to + (int64_t)i * n->outs,
                        (size_t)c * sizeof(float));
            if (!direct)
                row_write(n, &n->y, w->out, at, to);
        }
}

/* Rows and weights of what output row (d, h) reads, pairs of rows first; how many those are. */
static int find_zipped(work *w, int d, int h, int zipped)
{
    const narrow *n = w->n;
    int plane = d * n->stride[0] - n->pad[0], row = h * n->stride[1] - n->pad[1], count = 0;
    int first = larger(0, -plane), last = smaller(n->kernel[0], n->x.extent[0] - plane);
    int64_t numbers = (int64_t)n->kernel[2] * n->x.channels * n->outs;
    int64_t plain = (int64_t)n->inner * n->outs;
    int64_t size = n->zips > 0 ? numbers + plain : n->kernel[1] * plain;

    if (step_rows(w, w->row, w->taps, d, row, n->kernel[1], n->stride[1]))
        return zipped;
    for (int kd = first; kd < last && n->zips > 0 && row >= -1 && row < n->x.extent[1]; kd++) {
        w->row[count] = buffered(w, plane + kd, row) + n->zips;
        w->block[count++] = w->weight + kd * size;
    }
    zipped = count;
    for (int kd = first; kd < last; kd++)
        for (int kh = n->zips > 0 ? 2 : 0; kh < n->kernel[1]; kh++) {
            if (row + kh < 0 || row + kh >= n->x.extent[1])
                continue;
            w->row[count] = buffered(w, plane + kd, row + kh);
            w->block[count++] = w->weight + kd * size + (n->zips > 0 ? numbers : kh * plain);
        }
    w->taps = count;
    return zipped;
}

static void run_zipped(work *w)
{
    const narrow *n = w->n;
    narrow_zip row = { .width = n->y.extent[2], .outs = n->outs,
                       .step = n->stride[2] * n->x.channels,
                       .numbers = n->kernel[2] * n->x.channels, .x = w->row, .weight = w->block };

    buffer_x_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            buffer_x(w, d, h);
            row.zipped = find_zipped(w, d, h, row.zipped);
            row.taps = w->taps;
            row.y = (uint16_t *)w->out + row_at(&n->y, w->image, d, h);
            n->lanes->pairs->forward(&row);
        }
}

/*
 * Taps whose rows of x are numbers low .. high - 1 of those that output row h reads, or the row
 * behind it; 'mine' and 'next' say whether they are taps of row h and of row h + 1.
 */
static int two_rows_taps(const work *w, int d, int h, int low, int high, bool mine, bool next,
                         const float **x, const float **weight, const float **weight_next)
{
    const narrow *n = w->n;
    int plane = d * n->stride[0] - n->pad[0], row = h * n->stride[1] - n->pad[1], count = 0;
    int64_t size = (int64_t)n->inner * n->outs;

    low = larger(low, -row);
    high = smaller(high, n->x.extent[1] - row);
    for (int kd = larger(0, -plane); kd < smaller(n->kernel[0], n->x.extent[0] - plane); kd++)
        for (int k = low; k < high; k++, count++) {
            const float *from = w->weight + (int64_t)kd * n->kernel[1] * size;
            x[count] = buffered(w, plane + kd, row + k);
            if (mine)
                weight[count] = from + k * size;
            if (next)
                weight_next[count] = from + (k - n->stride[1]) * size;
        }
    return count;
}

/* Row (d, h) of a side from 'width' numbers of each of its channels, or channels at phases. */
static void write_row(const work *w, const narrow_side *s, int d, int h, const float *from,
                      int width, int channels)
{
    const narrow *n = w->n;
    int64_t at = row_at(s, w->image, d, h);
    bool whole = (int64_t)width * channels == s->row, direct = s->type == PONS_F32 && whole;
    float *to = direct ? (float *)w->out + at : w->line;

    if (n->pairs && s->type == PONS_BF16 && (channels < 3 || channels == 4)) {
        n->lanes->pairs->join((uint16_t *)w->out + at, from, n->pitch, s->row, channels);
        return;
    }
    n->lanes->layout->join(to, from, n->pitch, width, channels);
    if (!direct)
        row_write(n, s, w->out, at, to);
}

/* What output rows h and h + 1 of plane d read, or h alone. */
typedef struct two_rows {
    const float *x[2 * NARROW_TAPS], *weight[2][2 * NARROW_TAPS];
    int end[3];
} two_rows;

static void find_two_rows(work *w, two_rows *r, int d, int h, bool two)
{
    const narrow *n = w->n;
    int s = n->stride[1], k = n->kernel[1], count = 0;
    const struct { int low, high; bool mine, next; } part[3] = {
        { 0, two ? smaller(s, k) : k, true, false },
        { s, two ? k : s, true, true },
        { larger(s, k), two ? k + s : 0, false, true },
    };

    if (two && step_rows(w, r->x, r->end[2], d, h * s - n->pad[1], k + s, 2 * s))
        return;
    for (int i = 0; i < 3; i++) {
        count += two_rows_taps(w, d, h, part[i].low, part[i].high, part[i].mine, part[i].next,
                               r->x + count, r->weight[0] + count, r->weight[1] + count);
        r->end[i] = count;
    }
}

static void run_planar_forward(work *w)
{
    const narrow *n = w->n;
    two_rows r;
    narrow_two_rows rows = { .y = w->other, .width = n->y.extent[2], .pitch = n->pitch,
                             .inner = n->inner, .shift = n->shift, .x = r.x,
                             .weight = { r.weight[0], r.weight[1] } };

    r.end[2] = 0;
    buffer_x_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h += 2) {
            bool two = h < w->bottom;
            buffer_x(w, d, h + two);
            find_two_rows(w, &r, d, h, two);
            memcpy(rows.end, r.end, sizeof rows.end);
            n->planar->forward(&rows, n->outs);
            write_row(w, &n->y, d, h, w->other, n->y.extent[2], n->outs);
            if (two)
                write_row(w, &n->y, d, h + 1, w->other + (int64_t)n->outs * n->pitch,
                          n->y.extent[2], n->outs);
        }
}

/* Rows of x are read where they are: a buffer that holds all of them. */
static void run_placed(work *w)
{
    enum { AHEAD = 4 };
    const narrow *n = w->n;
    two_rows r;
    narrow_place rows = { .width = n->y.extent[2], .x = r.x,
                          .weight = { r.weight[0], r.weight[1] } };

    r.end[2] = w->low = w->low_row = 0;
    w->buffer = (float *)w->in + row_at(&n->x, w->image, 0, 0);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h += 2) {
            bool two = h < w->bottom;
            int plane = smaller(d * n->stride[0] - n->pad[0] + n->kernel[0], n->x.extent[0]) - 1;
            for (int i = 0; i < 2 * n->stride[1]; i++)
                ask_for(&n->x, w->in, w->image, plane, h * n->stride[1] + i + AHEAD);
            find_two_rows(w, &r, d, h, two);
            memcpy(rows.end, r.end, sizeof rows.end);
            for (int i = 0; i < 2; i++)
                rows.y[i] = i > two ? NULL : (uint16_t *)w->out + row_at(&n->y, w->image, d, h + i);
            n->lanes->pairs->place(&rows, n->outs);
        }
}

/* What the least kernel position k that reaches 'at' of x reads of y; k + stride reads one less. */
static int first_source(const narrow *n, int axis, int at, int *k)
{
    int shifted = at + n->pad[axis];

    *k = shifted % n->stride[axis];
    return shifted / n->stride[axis];
}

static int spread_taps(work *w, int d, int h)
{
    const narrow *n = w->n;
    int kd, first, plane = first_source(n, 0, d, &kd), count = 0;
    int top = first_source(n, 1, h, &first);

    for (; kd < n->kernel[0]; kd += n->stride[0], plane--)
        for (int kh = first, row = top; kh < n->kernel[1]; kh += n->stride[1], row--) {
            if (plane < 0 || plane >= n->y.extent[0] || row < 0 || row >= n->y.extent[1])
                continue;
            w->row[count] = buffered(w, plane, row);
            w->block[count++] = w->weight + (int64_t)(kd * n->kernel[1] + kh) * n->outs * n->inner;
        }
    return count;
}

/* x[q s + phase][i] = sum over kw of z[kw, i][q + (phase + pad - kw) / s]. */
static void gather_phases(const narrow *n, const float *z, float *rows)
{
    int s = n->stride[2], width = over(n->x.extent[2], s), c = n->x.channels;

    for (int phase = 0; phase < s; phase++) {
        int first, begin = first_source(n, 2, phase, &first);
        for (int i = 0; i < c; i++) {
            const float *from[NARROW_MARGIN];
            int count = 0, offset = begin;
            for (int kw = first; kw < n->kernel[2]; kw += s)
                from[count++] = z + (int64_t)(kw * c + i) * n->pitch + offset--;
            n->lanes->planar->add(rows + (int64_t)(phase * c + i) * n->pitch, width, count, from);
        }
    }
}

/* The first of y that reaches 'at' of x, if any does. */
static int lowest_source(const narrow *n, int axis, int at)
{
    return over(larger(at + n->pad[axis] - n->kernel[axis] + 1, 0), n->stride[axis]);
}

static void buffer_y_begin(work *w)
{
    const narrow *n = w->n;
    const int low[2] = { lowest_source(n, 0, w->first), lowest_source(n, 1, w->top) };

    buffer_begin(w, &n->y, low);
}

/* What reaches row h of plane d of x, as above. */
static void buffer_y(work *w, int d, int h)
{
    const narrow *n = w->n;

    d = n->ring ? d : w->last;
    h = n->ring ? h : w->bottom;
    buffer_up_to(w, &n->y, (d + n->pad[0]) / n->stride[0], (h + n->pad[1]) / n->stride[1], fill_y);
}

static void run_planar_spread(work *w)
{
    const narrow *n = w->n;
    int s = n->stride[2];
    float *z = w->other + NARROW_MARGIN;
    float *rows = w->other + (int64_t)n->pitch * n->inner + 2 * NARROW_MARGIN;

    buffer_y_begin(w);
    memset(w->other, 0, (size_t)(n->pitch * n->inner + 2 * NARROW_MARGIN) * sizeof(float));
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h++) {
            buffer_y(w, d, h);
            int taps = spread_taps(w, d, h);
            n->planar->spread(z, n->y.extent[2], n->pitch, n->inner, taps, w->row, n->y_pitch,
                              n->y.channels, w->block);
            gather_phases(n, z, rows);
            write_row(w, &n->x, d, h, rows, over(n->x.extent[2], s), s * n->x.channels);
        }
}

/*
 * Rows of y that reach rows h and h + 1 of plane d of x, or h alone: those of the first alone, of
 * both, of the second.
 */
static void find_up(work *w, two_rows *r, int d, int h, bool two)
{
    const narrow *n = w->n;
    int64_t size = (int64_t)n->outs * n->inner;
    int first, plane_of_first = first_source(n, 0, d, &first), count = 0, s = n->stride[1];
    int low = lowest_source(n, 1, h), high = (h + two + n->pad[1]) / s;
    bool inside = two && 2 % s == 0 && h + n->pad[1] >= n->kernel[1] - 1 && high < n->y.extent[1];

    if (inside && w->inside == d) {
        for (int i = 0; i < r->end[2]; i++)
            r->x[i] += 2 / s * n->row;
        return;
    }
    w->inside = inside ? d : -1;
    high = smaller(high, n->y.extent[1] - 1);
    for (int part = 0; part < 3; part++) {
        for (int kd = first, plane = plane_of_first; kd < n->kernel[0];
             kd += n->stride[0], plane--)
            for (int row = low; row <= high && plane >= 0 && plane < n->y.extent[0]; row++) {
                int kh = h + n->pad[1] - row * s;
                bool mine = kh >= 0 && kh < n->kernel[1];
                bool next = two && kh + 1 >= 0 && kh + 1 < n->kernel[1];
                const float *weight = w->weight + ((int64_t)kd * n->kernel[1] + kh) * size;
                if ((mine || next) && part == (mine && next ? 1 : mine ? 0 : 2)) {
                    r->x[count] = buffered(w, plane, row);
                    r->weight[0][count] = mine ? weight : NULL;
                    r->weight[1][count++] = next ? weight + size : NULL;
                }
            }
        r->end[part] = count;
    }
}

/* The row of y that will be taken apart soon, if any; else what is at hand. */
static void ask_meanwhile(const work *w, narrow_up *rows)
{
    enum { AHEAD = 3 };
    const narrow *n = w->n;
    bool soon = w->ready + AHEAD < n->y.extent[1] && rows->end[2] > 0;
    int64_t at = soon ? row_at(&n->y, w->image, w->newest, w->ready + AHEAD) : 0;

    rows->next_row = soon ? (const char *)((const float *)w->in + at) : (const char *)w->other;
    rows->step = soon ? over((int)(n->y.row * (int64_t)sizeof(float)), rows->end[2] * n->outs) : 0;
}

static void run_planar_up(work *w)
{
    const narrow *n = w->n;
    int c = n->x.channels, width = over(n->x.extent[2], 2);
    two_rows r;
    narrow_up rows = { .x = w->other, .width = width, .pitch = n->pitch, .y_pitch = n->y_pitch,
                       .outs = n->y.channels, .y = r.x, .weight = { r.weight[0], r.weight[1] } };

    buffer_y_begin(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = w->top; h <= w->bottom; h += 2) {
            bool two = h < w->bottom;
            buffer_y(w, d, h + two);
            find_up(w, &r, d, h, two);
            memcpy(rows.end, r.end, sizeof rows.end);
            ask_meanwhile(w, &rows);
            n->lanes->pairs->up(&rows, c);
            for (int i = 0; i <= two; i++)
                write_row(w, &n->x, d, h + i, w->other + i * 2 * (int64_t)c * n->pitch, width,
                          2 * c);
        }
}

/* One row of y for the weight gradient: [w][outs], zero in channels that only pad. */
static const float *read_wide_y(const narrow *n, const void *y, int image, int plane, int row,
                                float *line, float *to)
{
    int c = n->y.channels;

    if (c == n->outs && n->y.type == PONS_F32)
        return (const float *)y + row_at(&n->y, image, plane, row);
    row_read(n, &n->y, y, image, plane, row, c == n->outs ? to : line);
    for (int i = 0; i < n->y.extent[2] && c < n->outs; i++) {
        memcpy(to + (int64_t)i * n->outs, line + (int64_t)i * c, (size_t)c * sizeof(float));
        memset(to + (int64_t)i * n->outs + c, 0, (size_t)(n->outs - c) * sizeof(float));
    }
    return to;
}

/* The rows of x that meet row (d, h) of y, and the sums of their taps. */
static void weight_taps(work *w, int d, int h, float *sum)
{
    if (find_taps(w, d, h))
        for (int i = 0; i < w->taps; i++)
            w->sum[i] = sum + w->tap[i] * (w->n->sums / w->n->taps);
}

/* Row h of plane d of y meets rows of x. */
static void add_row(work *w, int d, int h, float *sum)
{
    const narrow *n = w->n;
    const float *y = read_wide_y(n, w->y, w->image, d, h, w->line, w->other);

    weight_taps(w, d, h, sum);
    n->wide->weight(w->sum, n->y.extent[2], n->outs, w->taps, w->row,
                    n->stride[2] * n->x.channels, n->inner, y);
}

/*
 * A channel of y at a kernel position (kd, kh). It meets rows u of those rows of x that are a
 * multiple of the step between rows of y apart, with row u - shift of y, for low <= u < high.
 */
typedef struct line {
    float *sum;
    const float *y; /* its first row */
    int shift, low, high;
} line;

static int below(int a, int by) { return (a >= 0 ? a : a - by + 1) / by; }

static void add_rows(const narrow *n, const float *x, int64_t x_next, const line *l, int lines,
                     int low, int high)
{
    int64_t y_next = (int64_t)n->y_pitch * n->outs;
    const float *y[NARROW_LINES];
    float *sum[NARROW_LINES];

    for (int i = 0; i < lines; i++) {
        y[i] = l[i].y + (low - l[i].shift) * y_next;
        sum[i] = l[i].sum;
    }
    if (low < high)
        n->planar->weight(sum, lines, n->y.extent[2], high - low, x + low * x_next, x_next,
                          n->shift, n->inner, y, y_next);
}

/* Rows that all lines meet at once, then those of each alone. */
static void add_lines(const narrow *n, const float *x, int64_t x_next, const line *l, int lines)
{
    int low = l[0].low, high = l[0].high;

    for (int i = 1; i < lines; i++) {
        low = larger(low, l[i].low);
        high = smaller(high, l[i].high);
    }
    high = larger(high, low);
    add_rows(n, x, x_next, l, lines, low, high);
    for (int i = 0; i < lines; i++) {
        add_rows(n, x, x_next, l + i, 1, l[i].low, smaller(low, l[i].high));
        add_rows(n, x, x_next, l + i, 1, larger(high, l[i].low), l[i].high);
    }
}

/* The lines of kernel positions (kd, .) that read rows 'phase' + a multiple of 'step' of x. */
static int find_lines(const work *w, int kd, int step, int phase, float *sum, line *lines)
{
    const narrow *n = w->n;
    int rows = over(n->y.extent[1], narrow_together(n)), first = phase + n->x.apart, count = 0;

    for (int kh = 0; kh < n->kernel[1]; kh++) {
        int shift = below(kh - n->pad[1], step);
        if (kh - n->pad[1] - shift * step != phase)
            continue;
        for (int o = 0; o < n->outs; o++)
            lines[count++] = (line){
                .sum = sum + ((int64_t)(kd * n->kernel[1] + kh) * n->outs + o) * n->inner *
                                 NARROW_LANES,
                .y = w->other + (int64_t)o * n->y_pitch, .shift = shift,
                .low = larger(shift, -(first / step)),
                .high = smaller(shift + rows, below(n->x.extent[1] - 1 - phase, step) + 1),
            };
    }
    return count;
}

/* Plane d of y meets planes of x. */
static void add_plane(const work *w, int d, float *sum)
{
    const narrow *n = w->n;
    int together = narrow_together(n), step = together * n->stride[1];
    line lines[NARROW_TAPS * NARROW_CHANNELS];

    for (int h = 0; h < n->y.extent[1]; h += together)
        fill_y(n, w->y, w->image, d, h, w->line,
               w->other + (int64_t)(h / together) * n->y_pitch * n->outs);
    for (int kd = 0; kd < n->kernel[0]; kd++) {
        int plane = d * n->stride[0] + kd - n->pad[0];
        if (plane < 0 || plane >= n->x.extent[0])
            continue;
        for (int phase = 0; phase < step; phase++) {
            int count = find_lines(w, kd, step, phase, sum, lines);
            for (int i = 0, some; i < count; i += some) {
                some = count - i == NARROW_LINES ? NARROW_LINES : smaller(3, count - i);
                add_lines(n, buffered(w, plane, phase), step * n->row, lines + i, some);
            }
        }
    }
}

static void run_weight(work *w, float *sum)
{
    const narrow *n = w->n;

    buffer_x_begin(w);
    buffer_x(w, w->last, w->bottom);
    memset(sum, 0, (size_t)n->sums * sizeof(float));
    for (int d = w->first; d <= w->last; d++) {
        if (n->form == PLANAR_WEIGHT)
            add_plane(w, d, sum);
        for (int h = 0; h < n->y.extent[1] && n->form == WIDE_WEIGHT; h += narrow_together(n))
            add_row(w, d, h, sum);
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
    int task = (int)i;
    work w;

    w.n = n;
    w.in = k->in;
    w.y = k->y;
    w.out = k->out;
    w.weight = k->packed;
    w.buffer = k->areas + thread * n->area;
    w.taps = 0;
    w.inside = -1;
    w.line = w.buffer + (n->placed ? 0 : n->planes * n->plane);
    w.other = w.line + n->line;
    w.image = task / n->bands / n->blocks;
    w.first = task / n->bands % n->blocks * n->block;
    w.last = smaller(w.first + n->block, extent[0]) - 1;
    w.top = task % n->bands * n->band;
    w.bottom = smaller(w.top + n->band, extent[1]) - 1;
    switch (n->form) {
    case WIDE_FORWARD: n->zipped ? run_zipped(&w) : run_wide_forward(&w); break;
    case PLANAR_FORWARD: n->placed ? run_placed(&w) : run_planar_forward(&w); break;
    case PLANAR_SPREAD: n->up ? run_planar_up(&w) : run_planar_spread(&w); break;
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
