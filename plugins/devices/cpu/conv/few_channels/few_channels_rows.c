/*
 * few_channels_rows.c - rows of a narrow convolution's tensors as its loops want them, and back:
 * padded, float or pairs of bf16, channels apart or together. few_channels_layout.c has the loops.
 */
#include "cpu/conv/few_channels/few_channels_task.h"

#include <string.h>

#include "base/integer.h"

/* NULL: there is none. */
static const uint16_t *half_at(const narrow_side *s, const void *from, int image, int plane,
                               int row)
{
    if (row < 0 || row >= s->extent[1])
        return NULL;
    return (const uint16_t *)from + narrow_row_at(s, image, plane, row);
}

void narrow_row_read(const narrow *n, const narrow_side *s, const void *from, int image, int plane,
                     int row, float *to)
{
    int64_t at = narrow_row_at(s, image, plane, row);

    if (s->apart > 0)
        n->lanes->pairs->zip(to, half_at(s, from, image, plane, row),
                             half_at(s, from, image, plane, row + s->apart), s->row);
    else if (s->type == PONS_BF16)
        n->lanes->layout->from_bf16(to, (const uint16_t *)from + at, s->row);
    else
        memcpy(to, (const float *)from + at, (size_t)s->row * sizeof(float));
}

void narrow_row_write(const narrow *n, const narrow_side *s, void *to, int64_t at,
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
        return (const float *)from + narrow_row_at(s, image, plane, row);
    narrow_row_read(n, s, from, image, plane, row, line);
    return line;
}

/* Pairs of a row's numbers and those of the row 'apart' behind it, channels apart. */
static void split_pairs(const narrow *n, const narrow_side *s, const void *from, int image,
                        int plane, int row, float *to, int pitch)
{
    n->lanes->pairs->split(to, pitch, half_at(s, from, image, plane, row),
                           half_at(s, from, image, plane, row + s->apart), s->extent[2],
                           s->channels);
}

static bool splits_pairs(const narrow_side *s) { return s->apart > 0 && s->channels <= 2; }

/* Whether a row of y, or of a pair of them, meets this one of x. */
static bool is_read(const narrow *n, int row)
{
    int step = narrow_together(n) * n->stride[1];

    return (row + n->pad[1] + step) % step < n->kernel[1];
}

/* One row of x behind its padding, channels and phases of the stride apart. */
static void fill_x_planar(const narrow *n, const void *x, int image, int plane, int row,
                          float *line, float *to)
{
    int s = n->stride[2];

    if (n->gaps && !is_read(n, row))
        return;
    if (s == 1 && splits_pairs(&n->x)) {
        memset(to, 0, (size_t)n->lead * sizeof *to);
        split_pairs(n, &n->x, x, image, plane, row, to + n->lead, n->pitch);
        return;
    }
    if (s == 1) {
        const float *from = row_find(n, &n->x, x, image, plane, row, line);
        memset(to, 0, (size_t)n->lead * sizeof *to);
        n->lanes->layout->split(to + n->lead, n->pitch, from, n->x.extent[2], n->x.channels);
        return;
    }
    memset(line, 0, (size_t)n->line * sizeof *line);
    narrow_row_read(n, &n->x, x, image, plane, row, line + n->pad[2] * n->x.channels);
    n->lanes->layout->split(to, n->pitch, line, ceil_div_int(n->pad[2] + n->x.extent[2], s),
                            s * n->x.channels);
}

/* One row of x behind its padding. */
static void fill_x(const narrow *n, const void *x, int image, int plane, int row, float *line,
                   float *to)
{
    (void)line;
    if (n->gaps && !is_read(n, row))
        return;
    memset(to, 0, (size_t)n->row * sizeof *to);
    narrow_row_read(n, &n->x, x, image, plane, row, to + n->pad[2] * n->x.channels);
}

/*
 * The same of numbers whose neighbours become pairs; the padding is there: see
 * narrow_buffer_x_begin.
 */
static void fill_x_halves(const narrow *n, const void *x, int image, int plane, int row,
                          float *line, float *to)
{
    (void)line;
    memcpy((uint16_t *)to + n->pad[2] * n->x.channels,
           (const uint16_t *)x + narrow_row_at(&n->x, image, plane, row),
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

void narrow_fill_y(const narrow *n, const void *y, int image, int plane, int row, float *line,
                   float *to)
{
    if (splits_pairs(&n->y)) {
        split_pairs(n, &n->y, y, image, plane, row, to, n->y_pitch);
        return;
    }
    n->lanes->layout->split(to, n->y_pitch, row_find(n, &n->y, y, image, plane, row, line),
                            n->y.extent[2], n->y.channels);
}

narrow_fill *narrow_fill_of(const narrow *n)
{
    if (n->form == PLANAR_FORWARD || n->form == PLANAR_WEIGHT)
        return fill_x_planar;
    if (n->zips > 0)
        return fill_x_zipped;
    return n->form == WIDE_FORWARD && n->pairs ? fill_x_halves : fill_x;
}

void narrow_row_ask(const narrow_side *s, const void *from, int image, int plane, int row)
{
    enum { LINE = 64 };
    int64_t number = s->type == PONS_BF16 ? sizeof(uint16_t) : sizeof(float);

    if (row < 0 || row >= s->extent[1])
        return;
    const char *first = (const char *)from + narrow_row_at(s, image, plane, row) * number;
    for (int64_t i = 0; i < s->row * number; i += LINE)
        __builtin_prefetch(first + i);
}

void narrow_row_join(const narrow_work *w, const narrow_side *s, int d, int h, const float *from,
                     int width, int channels)
{
    const narrow *n = w->n;
    int64_t at = narrow_row_at(s, w->image, d, h);
    bool whole = (int64_t)width * channels == s->row, direct = s->type == PONS_F32 && whole;
    float *to = direct ? (float *)w->out + at : w->line;

    if (n->pairs && s->type == PONS_BF16 && (channels < 3 || channels == 4)) {
        n->lanes->pairs->join((uint16_t *)w->out + at, from, n->pitch, s->row, channels);
        return;
    }
    n->lanes->layout->join(to, from, n->pitch, width, channels);
    if (!direct)
        narrow_row_write(n, s, w->out, at, to);
}
