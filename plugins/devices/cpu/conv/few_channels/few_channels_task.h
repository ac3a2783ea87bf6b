/*
 * few_channels_task.h - a task of a narrow convolution while a thread works on it, the rows that
 * it reads and writes, and the runs over them. Each file below calls only what is declared above
 * it.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_TASK_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_TASK_H

#include "cpu/conv/few_channels/few_channels_plan.h"

/* One row of a tensor as the loops read it; 'line' is room for what lies between. */
typedef void narrow_fill(const narrow *n, const void *from, int image, int plane, int row,
                         float *line, float *to);

typedef struct narrow_work {
    const narrow *n;
    const float *weight;
    const void *y, *in;      /* in: of x and y the one that is buffered */
    void *out;
    float *buffer, *line, *other;
    const narrow_side *side; /* the one that is buffered */
    narrow_fill *fill;       /* and how its rows are */
    int image, first, last;  /* output planes of this task */
    int top, bottom;         /* output rows */
    int low_row;             /* the first that is buffered */
    int full, newest, ready; /* planes up to 'full' are buffered, and of those behind it up to
                                'newest' rows before 'ready' */
    int taps, inside;        /* found last; the plane of output rows whose taps are all inside x */
    int tap[NARROW_TAPS];
    const float *row[NARROW_TAPS], *block[NARROW_TAPS];
    float *sum[NARROW_TAPS];
} narrow_work;

/* What output rows h and h + 1 of plane d read, or h alone; 'end' as that of narrow_two_rows. */
typedef struct narrow_two_taps {
    const float *x[2 * NARROW_TAPS], *weight[2][2 * NARROW_TAPS];
    int end[3];
} narrow_two_taps;

/*
 * ---- few_channels_rows.c
 * ---------------------------------------------------------------------------
 */

/* Where row 'row' of a plane begins. */
static inline int64_t narrow_row_at(const narrow_side *s, int image, int plane, int row)
{
    return ((int64_t)image * s->extent[0] + plane) * s->plane + (int64_t)row * s->row;
}

/* Row 'row', or the pair that begins with it, as floats. */
void narrow_row_read(const narrow *n, const narrow_side *s, const void *from, int image, int plane,
                     int row, float *to);
/* The row at element 'at' from floats. */
void narrow_row_write(const narrow *n, const narrow_side *s, void *to, int64_t at,
                      const float *from);
/* Row (d, h) of a side from 'width' numbers of each of its channels, or channels at phases. */
void narrow_row_join(const narrow_work *w, const narrow_side *s, int d, int h, const float *from,
                     int width, int channels);
/* A row that is filled soon: its lines of memory come while others are computed. */
void narrow_row_ask(const narrow_side *s, const void *from, int image, int plane, int row);

/* One row of y with its channels apart, zero behind its end. */
narrow_fill narrow_fill_y;
/* How the form has rows of x. */
narrow_fill *narrow_fill_of(const narrow *n);

/*
 * ---- few_channels_buffer.c
 * -------------------------------------------------------------------------
 */

/* A row that is buffered. */
static inline const float *narrow_buffered(const narrow_work *w, int plane, int row)
{
    const narrow *n = w->n;

    return w->buffer + plane % n->planes * n->plane + (row - w->low_row) * n->row;
}

/* Nothing is buffered; rows from 'low' on will be, or from a pair's that holds the first. */
void narrow_buffer_begin(narrow_work *w, const narrow_side *s, const int low[2],
                         narrow_fill *fill);
/* Rows up to 'row' of the planes up to 'plane', as far as there are any, or a pair's second row. */
void narrow_buffer_up_to(narrow_work *w, int plane, int row);
/* The same of x, whose first rows are what the task's first output row reads. */
void narrow_buffer_x_begin(narrow_work *w);
/* What output row h of plane d reads, and all before it; without a ring what the task reads. */
void narrow_buffer_x(narrow_work *w, int d, int h);
/*
 * Whether the rows that 'count' of the buffered side's from 'row' on were found for can be had from
 * those of the output rows before: when both lie inside, they are 'step' rows on.
 */
bool narrow_step_rows(narrow_work *w, const float **x, int taps, int d, int row, int count,
                      int step);
/*
 * Taps (kd, kh) of output row (d, h) whose row, or a pair's second, lies inside x, and their rows;
 * false: the taps are those of the rows before.
 */
bool narrow_find_taps(narrow_work *w, int d, int h);

/* ---- the runs -------------------------------------------------------------------------------- */

/* few_channels_forward.c: WIDE_FORWARD, and with n->zipped. */
void narrow_forward_wide(narrow_work *w);
void narrow_forward_zipped(narrow_work *w);

/* few_channels_forward_planar.c: PLANAR_FORWARD, and with n->placed. */
void narrow_forward_planar(narrow_work *w);
void narrow_forward_placed(narrow_work *w);

/* few_channels_input_gradient.c: PLANAR_SPREAD, and with n->up. */
void narrow_spread(narrow_work *w);
void narrow_spread_up(narrow_work *w);

/* few_channels_weight_gradient.c: the gradients by the weight, to the task's sums. */
void narrow_gradient(narrow_work *w, float *sum);

#endif
