/*
 * few_channels_rows.c - read and write rows of the tensors as the loops of loops.h want them:
 * padded, float or pairs of bf16, channels split or joined.
 */
#include "cpu/conv/few_channels/few_channels_internal.h"

#include <string.h>

#include "base/integer.h"

/* NULL: there is none. */
static const uint16_t *half_at(const few_channels_side *s, const void *from, int image, int plane,
                               int row)
{
    if (row < 0 || row >= s->extent[1])
        return NULL;
    return (const uint16_t *)from + few_channels_row_at(s, image, plane, row);
}

void few_channels_row_read(const few_channels_plan *n, const few_channels_side *s, const void *from,
                           int image, int plane, int row, float *to)
{
    int64_t at = few_channels_row_at(s, image, plane, row);

    if (s->pair_stride > 0)
        n->lanes->bf16x2->interleave(to, half_at(s, from, image, plane, row),
                                     half_at(s, from, image, plane, row + s->pair_stride), s->row);
    else if (s->type == PONS_BF16)
        n->lanes->layout->from_bf16(to, (const uint16_t *)from + at, s->row);
    else
        memcpy(to, (const float *)from + at, (size_t)s->row * sizeof(float));
}

void few_channels_row_write(const few_channels_plan *n, const few_channels_side *s, void *to,
                            int64_t at, const float *from)
{
    if (s->type == PONS_BF16)
        n->to_bf16((uint16_t *)to + at, from, s->row);
    else
        memcpy((float *)to + at, from, (size_t)s->row * sizeof(float));
}

/* One row of a tensor where it is, if that will do: whole vectors of channels are read of it. */
static const float *row_find(const few_channels_plan *n, const few_channels_side *s,
                             const void *from, int image, int plane, int row, float *line)
{
    if (s->type == PONS_F32 && s->pair_stride == 0 &&
        (s->channels <= FEW_CHANNELS_MAX || s->channels % FEW_CHANNELS_LANES == 0))
        return (const float *)from + few_channels_row_at(s, image, plane, row);
    few_channels_row_read(n, s, from, image, plane, row, line);
    return line;
}

/* Pairs of a row's numbers and those of the row 'pair_stride' behind it, one channel a plane. */
static void split_pairs(const few_channels_plan *n, const few_channels_side *s, const void *from,
                        int image, int plane, int row, float *to, int pitch)
{
    n->lanes->bf16x2->split(to, pitch, half_at(s, from, image, plane, row),
                            half_at(s, from, image, plane, row + s->pair_stride), s->extent[2],
                            s->channels);
}

static bool splits_pairs(const few_channels_side *s) { return s->pair_stride > 0
    && s->channels <= 2; }

/* Whether a row of y, or of a pair of them, meets this one of x. */
static bool is_read(const few_channels_plan *n, int row)
{
    int step = few_channels_rows_together(n) * n->stride[1];

    return (row + n->pad[1] + step) % step < n->kernel[1];
}

/* One row of x behind its padding, channels and phases of the stride apart. */
static void fill_x_planar(const few_channels_plan *n, const void *x, int image, int plane, int row,
                          float *line, float *to)
{
    int s = n->stride[2];

    if (n->gaps && !is_read(n, row))
        return;
    if (s == 1 && splits_pairs(&n->x)) {
        memset(to, 0, (size_t)n->left_pad * sizeof *to);
        split_pairs(n, &n->x, x, image, plane, row, to + n->left_pad, n->pitch);
        return;
    }
    if (s == 1) {
        const float *from = row_find(n, &n->x, x, image, plane, row, line);
        memset(to, 0, (size_t)n->left_pad * sizeof *to);
        n->lanes->layout->split(to + n->left_pad, n->pitch, from, n->x.extent[2], n->x.channels);
        return;
    }
    memset(line, 0, (size_t)n->line * sizeof *line);
    few_channels_row_read(n, &n->x, x, image, plane, row, line + n->pad[2] * n->x.channels);
    n->lanes->layout->split(to, n->pitch, line, ceil_div_int(n->pad[2] + n->x.extent[2], s),
                            s * n->x.channels);
}

/* One row of x behind its padding. */
static void fill_x(const few_channels_plan *n, const void *x, int image, int plane, int row,
                   float *line, float *to)
{
    (void)line;
    if (n->gaps && !is_read(n, row))
        return;
    memset(to, 0, (size_t)n->row * sizeof *to);
    few_channels_row_read(n, &n->x, x, image, plane, row, to + n->pad[2] * n->x.channels);
}

/*
 * The same of numbers whose neighbours become pairs; the padding is there: see
 * few_channels_buffer_x_begin.
 */
static void fill_x_halves(const few_channels_plan *n, const void *x, int image, int plane, int row,
                          float *line, float *to)
{
    (void)line;
    memcpy((uint16_t *)to + n->pad[2] * n->x.channels,
           (const uint16_t *)x + few_channels_row_at(&n->x, image, plane, row),
           (size_t)n->x.row * sizeof(uint16_t));
}

/*
 * Fill a row of x for kernels of 3 rows: as above where it is the third row that a row of y reads,
 * and interleaved with the row behind it where it is the first.
 */
static void fill_x_interleaved(const few_channels_plan *n, const void *x, int image, int plane,
                               int row, float *line, float *to)
{
    int at = row + n->pad[1], margin = n->pad[2] * n->x.channels;

    if (row >= 0 && (at - 2) % n->stride[1] == 0)
        fill_x_halves(n, x, image, plane, row, line, to);
    if (at % n->stride[1] == 0)
        n->lanes->bf16x2->interleave(to + n->interleaved_at + margin, half_at(&n->x, x, image,
                                                                              plane, row),
                                     half_at(&n->x, x, image, plane, row + 1), n->x.row);
}

void few_channels_fill_y(const few_channels_plan *n, const void *y, int image, int plane, int row,
                         float *line, float *to)
{
    if (splits_pairs(&n->y)) {
        split_pairs(n, &n->y, y, image, plane, row, to, n->y_pitch);
        return;
    }
    n->lanes->layout->split(to, n->y_pitch, row_find(n, &n->y, y, image, plane, row, line),
                            n->y.extent[2], n->y.channels);
}

few_channels_fill *few_channels_fill_of(const few_channels_plan *n)
{
    if (n->form == PLANAR_FORWARD || n->form == PLANAR_WEIGHT)
        return fill_x_planar;
    if (n->interleaved_at > 0)
        return fill_x_interleaved;
    return n->form == VECTOR_FORWARD && n->bf16x2 ? fill_x_halves : fill_x;
}

void few_channels_row_prefetch(const few_channels_side *s, const void *from, int image, int plane,
                               int row)
{
    enum { LINE = 64 };
    int64_t number = s->type == PONS_BF16 ? sizeof(uint16_t) : sizeof(float);

    if (row < 0 || row >= s->extent[1])
        return;
    const char *first = (const char *)from + few_channels_row_at(s, image, plane, row) * number;
    for (int64_t i = 0; i < s->row * number; i += LINE)
        __builtin_prefetch(first + i);
}

void few_channels_row_join(const few_channels_task *w, const few_channels_side *s, int d, int h,
                           const float *from, int width, int channels)
{
    const few_channels_plan *n = w->n;
    int64_t at = few_channels_row_at(s, w->image, d, h);
    bool whole = (int64_t)width * channels == s->row, direct = s->type == PONS_F32 && whole;
    float *to = direct ? (float *)w->out + at : w->line;

    if (n->bf16x2 && s->type == PONS_BF16 && (channels < 3 || channels == 4)) {
        n->lanes->bf16x2->join((uint16_t *)w->out + at, from, n->pitch, s->row, channels);
        return;
    }
    n->lanes->layout->join(to, from, n->pitch, width, channels);
    if (!direct)
        few_channels_row_write(n, s, w->out, at, to);
}
