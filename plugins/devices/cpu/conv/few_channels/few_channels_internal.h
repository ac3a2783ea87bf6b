/*
 * few_channels_internal.h - the state of a task of a convolution with few channels, its rows, and
 * the runs over them. Each file calls only functions of the files above it.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_INTERNAL_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_INTERNAL_H

#include "cpu/conv/few_channels/few_channels_plan.h"

/* Fill one row as the loops read it; 'line' is a temporary row. */
typedef void few_channels_fill(const few_channels_plan *n, const void *from, int image, int plane,
                               int row, float *line, float *to);

typedef struct few_channels_task {
    const few_channels_plan *n;
    const float *weight;
    const void *y, *in;      /* in: of x and y the one that is buffered */
    void *out;
    float *buffer, *line, *other;
    const few_channels_side *side; /* the one that is buffered */
    few_channels_fill *fill;       /* fills its rows */
    int image, first, last;  /* output planes of this task */
    int top, bottom;         /* output rows */
    int low_row;             /* the first that is buffered */
    int full, newest, ready; /* buffered: planes up to 'full', then rows before 'ready' of those
                                up to 'newest' */
    int taps, inside;        /* taps found last; plane of output rows with all taps inside x */
    int tap[FEW_CHANNELS_TAPS];
    const float *row[FEW_CHANNELS_TAPS], *block[FEW_CHANNELS_TAPS];
    float *sum[FEW_CHANNELS_TAPS];
} few_channels_task;

/*
 * The rows that output rows h and h + 1 read, or h alone; 'end' is that of few_channels_two_rows.
 */
typedef struct few_channels_two_taps {
    const float *x[2 * FEW_CHANNELS_TAPS], *weight[2][2 * FEW_CHANNELS_TAPS];
    int end[3];
} few_channels_two_taps;

/* ---- few_channels_rows.c --------------------------------------------------------------------- */

/* The element at which row 'row' of a plane begins. */
static inline int64_t few_channels_row_at(const few_channels_side *s, int image, int plane, int row)
{
    return ((int64_t)image * s->extent[0] + plane) * s->plane + (int64_t)row * s->row;
}

/* Read row 'row', or the pair of rows that begins with it, as floats. */
void few_channels_row_read(const few_channels_plan *n, const few_channels_side *s, const void *from,
                           int image, int plane, int row, float *to);
/* Write the row at element 'at' from floats. */
void few_channels_row_write(const few_channels_plan *n, const few_channels_side *s, void *to,
                            int64_t at, const float *from);
/* Write row (d, h) of a side from 'width' elements of each channel, or of each phase's channels. */
void few_channels_row_join(const few_channels_task *w, const few_channels_side *s, int d, int h,
                           const float *from, int width, int channels);
/* Prefetch a row that is filled soon. */
void few_channels_row_prefetch(const few_channels_side *s, const void *from, int image, int plane,
                               int row);

/* Fill a row of y, channel by channel, with zeros behind its end. */
few_channels_fill few_channels_fill_y;
/* The function that fills rows of x for the form. */
few_channels_fill *few_channels_fill_of(const few_channels_plan *n);

/* ---- few_channels_buffer.c ------------------------------------------------------------------- */

/* The address of a buffered row. */
static inline const float *few_channels_buffered(const few_channels_task *w, int plane, int row)
{
    const few_channels_plan *n = w->n;

    return w->buffer + plane % n->planes * n->plane + (row - w->low_row) * n->row;
}

/* Empty the buffer for rows from 'low' on, or from the pair that has the first one. */
void few_channels_buffer_begin(few_channels_task *w, const few_channels_side *s, const int low[2],
                               few_channels_fill *fill);
/* Buffer rows up to 'row' of the planes up to 'plane' that exist, with second rows of pairs. */
void few_channels_buffer_up_to(few_channels_task *w, int plane, int row);
/* Empty the buffer for rows of x from those of the task's first output row on. */
void few_channels_buffer_x_begin(few_channels_task *w);
/* Buffer all rows of x up to those of output row h of plane d; without a ring, of the task. */
void few_channels_buffer_x(few_channels_task *w, int d, int h);
/*
 * Move the rows of the previous output row on by 'step' rows. Returns false, without a move, where
 * one of 'count' rows of the buffered side from 'row' on lies outside, or did so before.
 */
bool few_channels_step_rows(few_channels_task *w, const float **x, int taps, int d, int row,
                            int count, int step);
/*
 * Find the taps (kd, kh) of output row (d, h) whose row, or second row of a pair, lies inside x,
 * and those rows. Returns false where the taps are those of the previous output row.
 */
bool few_channels_find_taps(few_channels_task *w, int d, int h);

/* ---- the runs -------------------------------------------------------------------------------- */

/* few_channels_forward.c: VECTOR_FORWARD, and with n->interleaved. */
void few_channels_forward_vector(few_channels_task *w);
void few_channels_forward_interleaved(few_channels_task *w);

/* few_channels_forward_planar.c: PLANAR_FORWARD, and with n->in_place. */
void few_channels_forward_planar(few_channels_task *w);
void few_channels_forward_in_place(few_channels_task *w);

/* few_channels_input_gradient.c: PLANAR_INPUT, and with n->upsample2. */
void few_channels_input_gradient(few_channels_task *w);
void few_channels_input_gradient_upsample2(few_channels_task *w);

/* few_channels_weight_gradient.c: the weight gradient, added to the task's sums. */
void few_channels_weight_gradient(few_channels_task *w, float *sum);

/* few_channels_weight.c: pack the weight; add the sums of all tasks; write its gradient. */
void few_channels_weight_pack(const few_channels_plan *n, const void *weight, float *packed);
void few_channels_weight_add(const few_channels_plan *n, float *sums);
void few_channels_weight_write(const few_channels_plan *n, const float *sums, float *weight);

/* few_channels_run.c: as pons_kernel.run. */
pons_status few_channels_run(const pons_kernel *kernel, const pons_call *call, pons_error *err);

#endif
